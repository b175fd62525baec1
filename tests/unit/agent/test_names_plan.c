// SPDX-License-Identifier: GPL-2.0-only
// When names are asked for, and what is logged about their answers, without a clock.
#include "ctl/agent/names_plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define MINUTE_MS 60000
#define SECOND_MS 1000

// A plan, its clock, and the list or answers that are given to it next.
struct world {
	struct names_plan plan;
	struct plan_now now;
	struct refresh rows;
	struct refresh_refused refused;
	const char *asked[NAMES_AT_ONCE];
	size_t n_asked;
};

static int begin(void **state)
{
	struct world *w = mem_new(struct world);

	w->plan.random = 17;
	w->now = (struct plan_now){.ms = 1000000, .wall_s = 1700000000};
	*state = w;
	return 0;
}

static void forget_messages(struct world *w)
{
	vec_each (&w->plan.messages, message)
		free(message->text);
	w->plan.messages.n = 0;
}

static void forget_rows(struct world *w)
{
	vec_each (&w->rows, row)
		free(row->name);
	w->rows.n = 0;
	w->refused = (struct refresh_refused){0};
}

static int end(void **state)
{
	struct world *w = *state;

	forget_rows(w);
	vec_free(&w->rows);
	names_plan_free(&w->plan);
	mem_cleanup_free(state);
	return 0;
}

static struct refresh_name *add(struct world *w, const char *name)
{
	struct refresh_name *row = vec_add(&w->rows);

	*row = (struct refresh_name){
		.name = mem_strdup(name), .entries = true, .ends_s = UINT64_MAX, .ttl_s = 300};
	return row;
}

static void add_failure(struct world *w, const char *name, int error)
{
	struct refresh_name *row = add(w, name);

	row->error = error;
	snprintf(row->why, sizeof(row->why), "no answer for '%s'", name);
}

static void list(struct world *w)
{
	names_plan_listed(&w->plan, &w->rows, &w->refused, &w->now);
	forget_rows(w);
}

// A list of one name, whose last answer is just over: it is due now.
static void list_one(struct world *w, const char *name)
{
	struct refresh_name *row = add(w, name);

	row->ttl_s = 1;
	row->since_s = w->now.wall_s - 3600;
	list(w);
}

static void answer(struct world *w)
{
	names_plan_answered(&w->plan, &w->rows, &w->refused, &w->now);
	forget_rows(w);
}

static uint64_t wait_ms(const struct world *w)
{
	return names_plan_wait_ms(&w->plan, &w->now);
}

// Sleeps until the next question, at most so long, and asks. Returns how long that was.
static uint64_t ask(struct world *w)
{
	uint64_t wait = wait_ms(w);

	assert_true(wait != UINT64_MAX);
	w->now.ms += wait;
	w->now.wall_s += wait / 1000;
	w->n_asked = names_plan_ask(&w->plan, &w->now, w->asked);
	assert_true(w->n_asked > 0);
	return wait;
}

static bool has_said(const struct world *w, const char *text)
{
	vec_each (&w->plan.messages, message)
		if (!strcmp(message->text, text))
			return true;
	return false;
}

static void assert_between(uint64_t value, uint64_t least, uint64_t most)
{
	assert_in_range(value, least, most);
}

// ---- when ---------------------------------------------------------------------------------------

static void no_name_no_question(void **state)
{
	struct world *w = *state;

	assert_true(wait_ms(w) == UINT64_MAX);
	list(w);
	assert_true(wait_ms(w) == UINT64_MAX);
}

static void the_ttl_that_is_left_counts(void **state)
{
	struct world *w = *state;

	add(w, "a.lab")->since_s = w->now.wall_s - 100;
	list(w);
	assert_between(wait_ms(w), 200 * SECOND_MS, 201 * SECOND_MS);
	ask(w);
	add(w, "a.lab")->ttl_s = 60;
	answer(w);
	assert_between(wait_ms(w), MINUTE_MS, MINUTE_MS + 500);
}

static void a_ttl_is_within_bounds(void **state)
{
	static const struct {
		uint32_t ttl_s;
		bool hosts;
		uint64_t ms;
	} rows[] = {{0, false, 5000}, {1, false, 5000}, {86400, false, 3600000}, {0, true, 60000}};
	struct world *w = *state;

	list_one(w, "a.lab");
	for (size_t n = 0; n < sizeof(rows) / sizeof(*rows); n++) {
		struct refresh_name *row;

		ask(w);
		row = add(w, "a.lab");
		row->ttl_s = rows[n].ttl_s;
		row->hosts = rows[n].hosts;
		answer(w);
		assert_between(wait_ms(w), rows[n].ms, rows[n].ms + 500);
	}
}

static void the_policy_releases_an_address_earlier(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	ask(w);
	add(w, "a.lab")->ends_s = 20;
	answer(w);
	assert_int_equal(wait_ms(w), 21 * SECOND_MS);
}

static void failures_wait_longer_and_longer(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	for (uint64_t ms = 5000; ms < 3600000; ms *= 2) {
		ask(w);
		add_failure(w, "a.lab", -ENOENT);
		answer(w);
		assert_between(wait_ms(w), ms, ms + ms / 4);
	}
	ask(w);
	add_failure(w, "a.lab", -ENOENT);
	answer(w);
	assert_between(wait_ms(w), 3600000, 3600000 + 3600000 / 4);
}

// All names that wait for the name server, when one has an answer.
static void a_name_server_that_is_back_ends_the_wait(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	for (size_t n = 0; n < 8; n++) {
		ask(w);
		add_failure(w, "a.lab", -ETIMEDOUT);
		answer(w);
		assert_true(wait_ms(w) <= MINUTE_MS + MINUTE_MS / 4);
	}
	assert_true(wait_ms(w) >= MINUTE_MS);
	add(w, "a.lab");
	add(w, "b.lab");
	list(w);
	names_plan_hurry(&w->plan, &w->now);
	ask(w);
	add_failure(w, "a.lab", -ETIMEDOUT);
	add_failure(w, "b.lab", -ETIMEDOUT);
	answer(w);
	ask(w); // b.lab, which has failed once
	assert_int_equal(w->n_asked, 1);
	assert_string_equal(w->asked[0], "b.lab");
	add(w, "b.lab");
	answer(w);
	assert_true(wait_ms(w) <= 5000);
	assert_true(has_said(w, "'b.lab' resolves again"));
}

static void new_names_are_spread(void **state)
{
	struct world *w = *state;
	size_t questions = 0, asked = 0;
	char name[32];
	uint64_t began;

	for (unsigned n = 0; n < 10000; n++) {
		snprintf(name, sizeof(name), "n%05u.lab", n);
		add(w, name)->ttl_s = 0;
	}
	list(w);
	assert_true(wait_ms(w) >= 5000);
	for (began = w->now.ms; asked < 10000; questions++) {
		ask(w);
		assert_true(w->n_asked <= NAMES_AT_ONCE);
		for (size_t n = 0; n < w->n_asked; n++)
			add(w, w->asked[n])->ttl_s = 3600;
		answer(w);
		asked += w->n_asked;
	}
	assert_between(w->now.ms - began, 40000, 60000); // 250 in a second
	assert_between(questions, 40, 120);              // at most two
}

// 1000 names with a TTL of a minute that come due together are apart soon.
static void names_together_come_apart(void **state)
{
	struct world *w = *state;
	size_t largest = 0;
	uint64_t began;
	char name[32];

	for (unsigned n = 0; n < 5000; n++) {
		struct refresh_name *row;

		snprintf(name, sizeof(name), "n%05u.lab", n);
		row = add(w, name);
		row->ttl_s = 5;
		row->since_s = w->now.wall_s - 3600;
	}
	list(w);
	for (began = w->now.ms; w->now.ms < began + MINUTE_MS;) {
		ask(w);
		if (w->now.ms > began + MINUTE_MS / 2 && w->n_asked > largest)
			largest = w->n_asked;
		for (size_t n = 0; n < w->n_asked; n++)
			add(w, w->asked[n])->ttl_s = 5;
		answer(w);
	}
	assert_between(largest, 400, 600); // 1000 in a second, each half
}

static void after_a_switch_the_next_question_waits(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	ask(w);
	w->now.ms += 2000;
	add(w, "a.lab")->ttl_s = 0;
	w->rows.switched = true;
	answer(w);
	assert_int_equal(wait_ms(w), 8000);
}

static void all_are_due_after_a_reload(void **state)
{
	struct world *w = *state;

	add(w, "a.lab")->since_s = w->now.wall_s;
	list(w);
	assert_true(wait_ms(w) > MINUTE_MS);
	names_plan_hurry(&w->plan, &w->now);
	assert_true(wait_ms(w) <= 500);
}

// ---- which --------------------------------------------------------------------------------------

static void unlisted_names_are_forgotten(void **state)
{
	struct world *w = *state;

	add(w, "a.lab");
	add(w, "b.lab");
	add(w, "country DE")->place = true;
	list(w);
	assert_int_equal(w->plan.names.n, 2);
	add(w, "b.lab");
	list(w);
	assert_int_equal(w->plan.names.n, 1);
	assert_string_equal(w->plan.names.at[0].name, "b.lab");
}

// It was unblocked while it was asked for, or the record cannot be read.
static void a_name_without_a_row_is_listed_soon(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	ask(w);
	answer(w);
	assert_int_equal(w->plan.list_ms, 1000);
	assert_int_equal(wait_ms(w), 5000);
}

// ---- messages -----------------------------------------------------------------------------------

static void a_failure_is_logged_once(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	for (size_t n = 0; n < 3; n++) {
		ask(w);
		add_failure(w, "a.lab", -ENOENT);
		answer(w);
	}
	assert_int_equal(w->plan.messages.n, 1);
	assert_true(w->plan.messages.at[0].log == log_warning);
	assert_true(has_said(w, "no answer for 'a.lab'; its addresses stay as they were"));
	ask(w);
	add(w, "a.lab")->added = 2;
	answer(w);
	assert_int_equal(w->plan.messages.n, 3);
	assert_true(has_said(w, "'a.lab' resolves again"));
	assert_true(has_said(w, "'a.lab': 2 addresses added, 0 leaving"));
}

static void many_failures_are_counted(void **state)
{
	struct world *w = *state;
	char name[32];

	for (unsigned n = 0; n < 20; n++) {
		snprintf(name, sizeof(name), "n%u.lab", n);
		add(w, name);
	}
	list(w);
	names_plan_hurry(&w->plan, &w->now);
	ask(w);
	assert_int_equal(w->n_asked, 20);
	for (size_t n = 0; n < w->n_asked; n++)
		add_failure(w, w->asked[n], -ETIMEDOUT);
	answer(w);
	assert_int_equal(w->plan.messages.n, 6);
	assert_true(has_said(w, "15 more names: no answer; keeping the previous addresses"));
}

// A lax list may be empty: nothing is wrong with that until it has had an address.
static void an_empty_name_is_no_problem(void **state)
{
	struct world *w = *state;
	struct refresh_name *row = add(w, "a.lab");

	row->empty = true;
	list(w);
	names_plan_hurry(&w->plan, &w->now);
	ask(w);
	add_failure(w, "a.lab", -ENODATA);
	answer(w);
	assert_int_equal(w->plan.messages.n, 0);
	ask(w);
	add(w, "a.lab");
	answer(w);
	assert_int_equal(w->plan.messages.n, 0);
	ask(w);
	add_failure(w, "a.lab", -ENODATA);
	answer(w);
	assert_int_equal(w->plan.messages.n, 1);
}

// ---- troubles -----------------------------------------------------------------------------------

static void a_failed_question_is_one_trouble(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	for (uint64_t ms = 5000; ms < 3 * MINUTE_MS; ms *= 2) {
		uint64_t pause = ms < MINUTE_MS ? ms : MINUTE_MS;

		ask(w);
		names_plan_question_failed(&w->plan, "weir was killed", &w->now);
		assert_between(wait_ms(w), pause, pause + pause / 4);
	}
	assert_int_equal(w->plan.messages.n, 1);
	assert_true(w->plan.messages.at[0].log == log_error);
	assert_true(has_said(w, "weir was killed; all names keep their addresses"));
	assert_null(w->plan.names.at[0].why); // reported once, for all names
	forget_messages(w);
	ask(w);
	add(w, "a.lab");
	answer(w);
	assert_int_equal(w->plan.messages.n, 1);
	assert_true(has_said(w, "names are asked for again"));
}

// Detached, which weir status reports.
static void a_failure_of_no_instance_is_no_trouble(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	ask(w);
	names_plan_question_failed(&w->plan, NULL, &w->now);
	names_plan_list_failed(&w->plan, NULL);
	assert_int_equal(w->plan.messages.n, 0);
	assert_int_equal(w->plan.list_ms, 5000);
	assert_true(wait_ms(w) >= 5000);
}

// A refusal ends when the names that it has kept have been put into effect, and not with an answer
// for others.
static void a_refusal_lasts_as_long_as_it_keeps_names(void **state)
{
	struct world *w = *state;

	list_one(w, "a.lab");
	ask(w);
	add(w, "a.lab")->kept = REFRESH_ENTRIES;
	err_input(&w->refused.entries, "the journal is damaged");
	answer(w);
	assert_true(has_said(w, "the journal is damaged; the entries keep their addresses"));
	forget_messages(w);
	add(w, "a.lab");
	add(w, "b.lab")->since_s = w->now.wall_s - 299;
	list(w);
	ask(w);
	assert_string_equal(w->asked[0], "b.lab");
	add(w, "b.lab");
	answer(w);
	assert_int_equal(w->plan.messages.n, 0);
	ask(w);
	assert_string_equal(w->asked[0], "a.lab");
	add(w, "a.lab");
	answer(w);
	assert_true(has_said(w, "the entries follow their names again"));
}

static void a_list_that_cannot_be_read_is_read_again(void **state)
{
	struct world *w = *state;

	err_input(&w->refused.policy, "no record");
	list(w);
	assert_true(has_said(w, "no record; its names are tried again later"));
	assert_int_equal(w->plan.list_ms, 5000);
	w->plan.list_ms = 0;
	err_input(&w->refused.policy, "no record");
	list(w);
	assert_int_equal(w->plan.list_ms, 10000);
	w->plan.list_ms = 0;
	names_plan_list_failed(&w->plan, "no store");
	assert_true(has_said(w, "no store; the previous names are followed"));
	assert_int_equal(w->plan.list_ms, 5000);
	list(w);
	assert_true(has_said(w, "the names are listed again"));
	assert_true(has_said(w, "the policy follows its names again"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(no_name_no_question),
		TEST(the_ttl_that_is_left_counts),
		TEST(a_ttl_is_within_bounds),
		TEST(the_policy_releases_an_address_earlier),
		TEST(failures_wait_longer_and_longer),
		TEST(a_name_server_that_is_back_ends_the_wait),
		TEST(new_names_are_spread),
		TEST(names_together_come_apart),
		TEST(after_a_switch_the_next_question_waits),
		TEST(all_are_due_after_a_reload),
		TEST(unlisted_names_are_forgotten),
		TEST(a_name_without_a_row_is_listed_soon),
		TEST(a_failure_is_logged_once),
		TEST(many_failures_are_counted),
		TEST(an_empty_name_is_no_problem),
		TEST(a_failed_question_is_one_trouble),
		TEST(a_failure_of_no_instance_is_no_trouble),
		TEST(a_refusal_lasts_as_long_as_it_keeps_names),
		TEST(a_list_that_cannot_be_read_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
