// SPDX-License-Identifier: GPL-2.0-only
// When places are looked up, and what is logged about their answers, without a clock.
#include "ctl/agent/places_plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define FIRST_MS 10000
#define MOST_MS  600000

// A plan, its clock, and the answers that are given to it next.
struct world {
	struct places_plan plan;
	struct plan_now now;
	struct refresh rows;
};

static int begin(void **state)
{
	struct world *w = mem_new(struct world);

	w->now = (struct plan_now){.ms = 1000000, .wall_s = 1700000000};
	*state = w;
	return 0;
}

static void forget_rows(struct world *w)
{
	vec_each (&w->rows, row)
		free(row->name);
	w->rows.n = 0;
}

static int end(void **state)
{
	struct world *w = *state;

	forget_rows(w);
	vec_free(&w->rows);
	places_plan_free(&w->plan);
	mem_cleanup_free(state);
	return 0;
}

static struct refresh_name *add(struct world *w, const char *name, const char *why)
{
	struct refresh_name *row = vec_add(&w->rows);

	*row = (struct refresh_name){.name = mem_strdup(name), .place = true};
	snprintf(row->why, sizeof(row->why), "%s", why);
	return row;
}

static void list(struct world *w, size_t n)
{
	places_plan_listed(&w->plan, n, &w->now);
}

// Sleeps until the next look-up, and begins it. Returns how long that was.
static uint64_t ask(struct world *w)
{
	uint64_t wait = w->plan.due_ms - w->now.ms;

	assert_true(w->plan.due_ms != 0);
	w->now.ms += wait;
	assert_true(places_plan_begin(&w->plan, &w->now));
	return wait;
}

static void answer(struct world *w, bool failed)
{
	places_plan_answered(&w->plan, &w->rows, failed, &w->now);
	forget_rows(w);
}

static void answer_one(struct world *w, const char *why)
{
	add(w, "country DE", why);
	answer(w, false);
}

static const char *last_said(const struct world *w)
{
	return w->plan.messages.n ? vec_last(&w->plan.messages)->text : "";
}

// ---- when ---------------------------------------------------------------------------------------

static void the_first_place_is_looked_up_once(void **state)
{
	struct world *w = *state;

	list(w, 0);
	assert_int_equal(w->plan.due_ms, 0);
	list(w, 1);
	assert_int_equal(ask(w), 0);
	answer_one(w, "");
	list(w, 2);
	assert_int_equal(w->plan.due_ms, 0);
	list(w, 0);
	list(w, 1);
	assert_int_equal(ask(w), 0);
}

static void a_database_counts_only_with_such_entries(void **state)
{
	struct world *w = *state;

	places_plan_hurry(&w->plan, &w->now);
	assert_int_equal(w->plan.due_ms, 0);
	list(w, 1);
	ask(w);
	answer_one(w, "");
	places_plan_hurry(&w->plan, &w->now);
	assert_int_equal(ask(w), 0);
}

static void a_change_during_a_look_up_is_another_one(void **state)
{
	struct world *w = *state;

	list(w, 1);
	ask(w);
	places_plan_hurry(&w->plan, &w->now);
	assert_false(places_plan_begin(&w->plan, &w->now));
	w->now.ms += 500;
	answer_one(w, "it would shrink");
	assert_int_equal(ask(w), 0);
	answer_one(w, "");
	assert_int_equal(w->plan.due_ms, 0);
}

static void one_that_cannot_begin_is_begun_again(void **state)
{
	struct world *w = *state;

	list(w, 1);
	ask(w);
	places_plan_not_begun(&w->plan);
	assert_true(places_plan_begin(&w->plan, &w->now));
}

static void failures_are_tried_later_and_later(void **state)
{
	struct world *w = *state;
	uint64_t pause = FIRST_MS;

	list(w, 1);
	ask(w);
	for (int n = 0; n < 9; n++) {
		answer_one(w, "it would shrink");
		assert_int_equal(ask(w), pause);
		pause = pause * 2 < MOST_MS ? pause * 2 : MOST_MS;
	}
	answer_one(w, "");
	assert_int_equal(w->plan.due_ms, 0);
	places_plan_hurry(&w->plan, &w->now);
	ask(w);
	answer_one(w, "it would shrink");
	assert_int_equal(ask(w), FIRST_MS);
}

// An operator may have done what was refused.
static void a_command_checks_a_problem_but_not_each_time(void **state)
{
	struct world *w = *state;

	list(w, 1);
	ask(w);
	for (int n = 0; n < 3; n++) {
		answer_one(w, "it would shrink");
		ask(w);
	}
	answer_one(w, "it would shrink");
	w->now.ms += FIRST_MS / 2;
	list(w, 1);
	assert_true(w->plan.due_ms > w->now.ms);
	w->now.ms += FIRST_MS;
	list(w, 1);
	assert_int_equal(ask(w), 0);
}

// ---- what is logged -----------------------------------------------------------------------------

static void changes_are_logged(void **state)
{
	struct world *w = *state;
	struct refresh_name *row = add(w, "country DE", "");

	row->added = 1;
	row->released = 2;
	add(w, "country FR", "");
	list(w, 2);
	ask(w);
	answer(w, false);
	assert_int_equal(w->plan.messages.n, 1);
	assert_string_equal(last_said(w), "country DE: 1 prefix added, 2 removed");
}

static void a_failure_is_logged_once_and_its_end(void **state)
{
	struct world *w = *state;

	list(w, 1);
	ask(w);
	answer_one(w, "it would shrink");
	assert_string_equal(last_said(w), "it would shrink; the previous prefixes stay in use");
	ask(w);
	answer_one(w, "it would shrink");
	assert_int_equal(w->plan.messages.n, 1);
	ask(w);
	answer_one(w, "");
	assert_string_equal(last_said(w), "country DE follows its database again");
	assert_int_equal(w->plan.troubles.all.n, 0);
}

static void a_failure_as_a_whole_is_one_problem(void **state)
{
	struct world *w = *state;

	list(w, 2);
	ask(w);
	answer(w, true);
	assert_int_equal(w->plan.troubles.all.n, 1);
	assert_true(w->plan.due_ms != 0);
	ask(w);
	add(w, "country DE", "it would cut off a login");
	answer(w, true);
	assert_int_equal(w->plan.troubles.all.n, 1);
	assert_string_equal(w->plan.troubles.all.at[0].name, "country DE");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_first_place_is_looked_up_once),
		TEST(a_database_counts_only_with_such_entries),
		TEST(a_change_during_a_look_up_is_another_one),
		TEST(one_that_cannot_begin_is_begun_again),
		TEST(failures_are_tried_later_and_later),
		TEST(a_command_checks_a_problem_but_not_each_time),
		TEST(changes_are_logged),
		TEST(a_failure_is_logged_once_and_its_end),
		TEST(a_failure_as_a_whole_is_one_problem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
