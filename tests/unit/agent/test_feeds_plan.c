// SPDX-License-Identifier: GPL-2.0-only
// When a feed is fetched, and what follows from its text, without a clock and without a server.
#include "ctl/agent/feeds_plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define HOUR_MS 3600000
#define NONE    ((struct feed_found){.plain = true})
#define SAME    ((struct feed_found){.plain = true, .same = true})

// A feed that is fetched each hour, and its clock.
struct world {
	struct feed_plan plan;
	struct plan_now now;
};

static int begin(void **state)
{
	struct world *w = mem_new(struct world);

	w->plan.random = 17;
	w->plan.url = "https://lab/list";
	w->now = (struct plan_now){.ms = 1000000, .wall_s = 1700000000};
	*state = w;
	return 0;
}

static int begin_list(void **state)
{
	begin(state);
	((struct world *)*state)->plan.list = true;
	return 0;
}

static int end(void **state)
{
	feed_plan_free(&((struct world *)*state)->plan);
	mem_cleanup_free(state);
	return 0;
}

static void follow(struct world *w, bool has_copy)
{
	w->plan.copy_time = has_copy ? 5 : 0;
	feed_plan_follow(&w->plan, HOUR_MS, has_copy, &w->now);
}

static uint64_t wait_ms(const struct world *w)
{
	return w->plan.due_ms - w->now.ms;
}

// Sleeps until it is due. Returns how long that was.
static uint64_t fetch(struct world *w)
{
	uint64_t wait = wait_ms(w);

	w->now.ms += wait;
	w->now.wall_s += wait / 1000;
	assert_true(feed_plan_begin(&w->plan));
	assert_int_equal(w->plan.step, FEED_FETCHES);
	return wait;
}

static enum feed_step fetched(struct world *w, bool same)
{
	return feed_plan_fetched(&w->plan, same, &w->now);
}

static enum feed_step read_it(struct world *w, struct feed_found found)
{
	return feed_plan_read(&w->plan, &found, &w->now);
}

static void failed(struct world *w, const char *why)
{
	feed_plan_failed(&w->plan, why, why, &w->now);
}

static size_t said(const struct world *w, const char *text)
{
	size_t n = 0;

	vec_each (&w->plan.messages, message)
		n += !strcmp(message->text, text);
	return n;
}

static void assert_about_an_hour(const struct world *w)
{
	assert_in_range(wait_ms(w), HOUR_MS - HOUR_MS / 10, HOUR_MS);
}

// ---- when ---------------------------------------------------------------------------------------

static void without_a_copy_soon(void **state)
{
	struct world *w = *state;

	follow(w, false);
	assert_int_equal(wait_ms(w), 100);
	assert_int_equal(w->plan.due_s, w->now.wall_s);
}

static void with_a_copy_after_every_or_a_tenth_earlier(void **state)
{
	struct world *w = *state;
	uint64_t least = UINT64_MAX, most = 0;

	for (int n = 0; n < 100; n++) {
		follow(w, true);
		assert_about_an_hour(w);
		least = wait_ms(w) < least ? wait_ms(w) : least;
		most = wait_ms(w) > most ? wait_ms(w) : most;
	}
	assert_true(most - least > HOUR_MS / 20);
}

static void one_step_at_a_time(void **state)
{
	struct world *w = *state;

	follow(w, false);
	fetch(w);
	assert_false(feed_plan_begin(&w->plan));
	fetched(w, false);
	assert_false(feed_plan_begin(&w->plan));
	read_it(w, NONE);
	assert_true(feed_plan_begin(&w->plan));
}

static void a_reload_takes_the_place_of_a_fetch(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	feed_plan_hurry(&w->plan, true, &w->now);
	assert_int_equal(wait_ms(w), 0);
	assert_true(feed_plan_begin(&w->plan));
}

static void a_reload_does_not_disturb_a_step_on_disk(void **state)
{
	struct world *w = *state;

	follow(w, false);
	fetch(w);
	fetched(w, false);
	feed_plan_hurry(&w->plan, true, &w->now);
	assert_int_equal(w->plan.step, FEED_READS);
	assert_false(feed_plan_begin(&w->plan));
	assert_int_equal(read_it(w, NONE), FEED_WAITS);
	assert_about_an_hour(w);
}

// ---- failures -----------------------------------------------------------------------------------

static void failures_are_tried_later_and_later_up_to_every(void **state)
{
	struct world *w = *state;
	uint64_t most = 10000;

	follow(w, true);
	for (int n = 0; n < 12; n++) {
		fetch(w);
		failed(w, "the server answered 404");
		assert_in_range(wait_ms(w), most - most / 10, most);
		most = most * 2 < HOUR_MS ? most * 2 : HOUR_MS;
	}
	assert_int_equal(w->plan.trouble.times, 12);
}

static void a_failure_is_reported_once_and_its_end(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	failed(w, "cut off after 17 bytes");
	assert_true(w->plan.failing);
	w->plan.failing = false;
	fetch(w);
	failed(w, "cut off after 18 bytes");
	assert_false(w->plan.failing);
	assert_int_equal(w->plan.messages.n, 1);
	assert_int_equal(said(w, "cut off after 17 bytes; the last good text stays in use"), 1);
	assert_int_equal(w->plan.good_s, 0);
	fetch(w);
	fetched(w, true);
	assert_true(w->plan.good);
	assert_int_equal(said(w, "'https://lab/list' is good again"), 1);
	assert_int_equal(w->plan.good_s, w->now.wall_s);
	assert_about_an_hour(w);
}

static void another_failure_is_reported(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	failed(w, "the server answered 404");
	fetch(w);
	failed(w, "no answer in time");
	assert_int_equal(w->plan.messages.n, 2);
}

static void entries_with_ends_are_not_promised_to_stay(void **state)
{
	struct world *w = *state;

	w->plan.ends = true;
	follow(w, true);
	fetch(w);
	failed(w, "why");
	assert_int_equal(said(w, "why; the entries of its last good text stay until their ends"),
			 1);
}

// ---- a policy -----------------------------------------------------------------------------------

static void a_new_text_is_applied(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	assert_int_equal(fetched(w, false), FEED_READS);
	assert_false(w->plan.changed);
	assert_int_equal(read_it(w, NONE), FEED_WAITS);
	assert_true(w->plan.changed);
	assert_int_equal(said(w, "'https://lab/list' has changed"), 1);
	assert_about_an_hour(w);
}

static void what_the_server_calls_current_is_not_read(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	assert_int_equal(fetched(w, true), FEED_WAITS);
	assert_false(w->plan.changed);
}

static void the_same_text_again_changes_nothing(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	assert_int_equal(fetched(w, false), FEED_READS);
	assert_int_equal(read_it(w, SAME), FEED_WAITS);
	assert_false(w->plan.changed);
	assert_int_equal(w->plan.messages.n, 0);
}

static void a_bad_text_is_not_applied(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	fetched(w, false);
	failed(w, "line 2");
	assert_false(w->plan.changed);
	assert_int_equal(w->plan.step, FEED_WAITS);
	assert_int_equal(w->plan.copy_time, 5);
}

// ---- a list -------------------------------------------------------------------------------------

static void a_list_is_changed_and_then_the_copy(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	assert_int_equal(fetched(w, false), FEED_READS);
	assert_int_equal(read_it(w, NONE), FEED_CHANGES);
	assert_int_equal(feed_plan_listed(&w->plan, &w->now), FEED_SAVES);
	assert_int_equal(w->plan.good_s, 0);
	assert_int_equal(feed_plan_saved(&w->plan, 6, &w->now), FEED_WAITS);
	assert_false(w->plan.changed);
	assert_true(feed_plan_is_plain(&w->plan));
	assert_about_an_hour(w);
}

// The copy may not be the content of the list yet: that is found once.
static void a_plain_copy_is_read_once(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	assert_int_equal(fetched(w, true), FEED_READS);
	assert_int_equal(read_it(w, SAME), FEED_WAITS);
	fetch(w);
	assert_int_equal(fetched(w, true), FEED_WAITS);
	w->plan.copy_time = 7; // a command has fetched
	fetch(w);
	assert_int_equal(fetched(w, true), FEED_READS);
}

static void the_same_text_with_ends_is_a_change_each_time(void **state)
{
	const struct feed_found found = {.same = true, .plain = false};
	struct world *w = *state;

	follow(w, true);
	for (int n = 0; n < 3; n++) {
		fetch(w);
		assert_int_equal(fetched(w, true), FEED_READS);
		assert_int_equal(read_it(w, found), FEED_CHANGES);
		assert_int_equal(feed_plan_listed(&w->plan, &w->now), FEED_WAITS);
	}
	assert_int_equal(w->plan.good_s, w->now.wall_s);
}

static void a_list_whose_entries_all_end_is_never_plain(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	fetched(w, true);
	read_it(w, SAME);
	assert_true(feed_plan_is_plain(&w->plan));
	w->plan.ends = true;
	assert_false(feed_plan_is_plain(&w->plan));
}

static void a_refused_list_keeps_its_copy(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	fetched(w, false);
	read_it(w, NONE);
	failed(w, "would shrink");
	assert_int_equal(w->plan.copy_time, 5);
	assert_false(feed_plan_is_plain(&w->plan));
}

static void a_damaged_copy_is_forgotten(void **state)
{
	struct world *w = *state;

	follow(w, true);
	fetch(w);
	fetched(w, true);
	failed(w, "damaged");
	assert_int_equal(w->plan.copy_time, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
#define LIST(name) cmocka_unit_test_setup_teardown(name, begin_list, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_copy_soon),
		TEST(with_a_copy_after_every_or_a_tenth_earlier),
		TEST(one_step_at_a_time),
		TEST(a_reload_takes_the_place_of_a_fetch),
		TEST(a_reload_does_not_disturb_a_step_on_disk),
		TEST(failures_are_tried_later_and_later_up_to_every),
		TEST(a_failure_is_reported_once_and_its_end),
		TEST(another_failure_is_reported),
		LIST(entries_with_ends_are_not_promised_to_stay),
		TEST(a_new_text_is_applied),
		TEST(what_the_server_calls_current_is_not_read),
		TEST(the_same_text_again_changes_nothing),
		TEST(a_bad_text_is_not_applied),
		LIST(a_list_is_changed_and_then_the_copy),
		LIST(a_plain_copy_is_read_once),
		LIST(the_same_text_with_ends_is_a_change_each_time),
		LIST(a_list_whose_entries_all_end_is_never_plain),
		LIST(a_refused_list_keeps_its_copy),
		LIST(a_damaged_copy_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
