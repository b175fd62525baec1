// SPDX-License-Identifier: GPL-2.0-only
// When the policy file and the active policy are applied, without files and processes.
#include "ctl/agent/applies_plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define FIRST_MS 10000
#define MOST_MS  600000

// A policy file that exists, the active policy, and their clock.
struct world {
	struct trouble refused;
	struct file_seen seen;
	struct file_plan file;
	struct again_plan again;
	struct plan_now now;
};

static void write_text(struct world *w, const char *text)
{
	snprintf(w->seen.text, sizeof(w->seen.text), "%s", text);
	w->seen.exists = text[0];
}

static int begin(void **state)
{
	struct world *w = mem_new(struct world);

	w->file.path = "main.weir";
	w->file.refused = &w->refused;
	w->now = (struct plan_now){.ms = 1000000, .wall_s = 1700000000};
	write_text(w, "one");
	*state = w;
	return 0;
}

// The agent has applied the file at its start.
static int begin_applied(void **state)
{
	struct world *w;

	begin(state);
	w = *state;
	file_plan_start(&w->file, &w->seen, false, "1001", &w->now);
	return 0;
}

// The active policy is known, and has places.
static int begin_active(void **state)
{
	struct world *w;
	bool read;

	begin(state);
	w = *state;
	read = again_plan_look(&w->again, "1001", false);
	again_plan_read(&w->again, true, &w->now);
	if (!read || !again_plan_begin(&w->again))
		return -1;
	again_plan_succeeded(&w->again, false, &w->now);
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	file_plan_free(&w->file);
	again_plan_free(&w->again);
	trouble_end(&w->refused);
	mem_cleanup_free(state);
	return 0;
}

static void change(struct world *w, const char *text)
{
	write_text(w, text);
	file_plan_changed(&w->file, &w->seen);
}

static bool starts(struct world *w)
{
	bool offline;

	return file_plan_begin(&w->file, &offline);
}

static bool starts_offline(struct world *w)
{
	bool offline = false;

	assert_true(file_plan_begin(&w->file, &offline));
	return offline;
}

static bool refuse(struct world *w, const char *why, const char *first)
{
	return file_plan_failed(&w->file, why, first, "1001", &w->now);
}

static const char *last_said(const struct plan_messages *messages)
{
	return messages->n ? vec_last(messages)->text : "";
}

// ---- the policy file ----------------------------------------------------------------------------

static void a_file_that_was_applied_waits_for_a_change(void **state)
{
	struct world *w = *state;

	assert_false(starts(w));
	assert_int_equal(w->file.due_ms, 0);
	change(w, "two");
	assert_true(starts(w));
}

static void a_file_that_comes_during_the_start_is_applied(void **state)
{
	struct world *w = *state;

	w->seen.optional = true;
	file_plan_start(&w->file, &w->seen, true, "", &w->now);
	assert_true(starts(w));
}

static void one_apply_at_a_time_and_one_after_it(void **state)
{
	struct world *w = *state;

	change(w, "two");
	assert_true(starts(w));
	change(w, "three");
	change(w, "four");
	assert_false(starts(w));
	file_plan_succeeded(&w->file);
	assert_true(starts(w));
	file_plan_succeeded(&w->file);
	assert_false(starts(w));
}

static void copies_of_feeds_are_used_if_all_reasons_allow_it(void **state)
{
	struct world *w = *state;

	file_plan_want(&w->file, &w->seen, true);
	assert_true(starts_offline(w));
	file_plan_want(&w->file, &w->seen, true);
	file_plan_want(&w->file, &w->seen, false);
	file_plan_want(&w->file, &w->seen, true);
	file_plan_succeeded(&w->file);
	assert_false(starts_offline(w));
}

// A list has changed, but a person has replaced this policy.
static void a_replaced_revision_is_applied_only_when_it_is_written(void **state)
{
	struct world *w = *state;

	snprintf(w->seen.replaced, REVISION_ID, "1001");
	snprintf(w->seen.current, REVISION_ID, "1002");
	change(w, "one");
	assert_false(starts(w));
	assert_string_equal(last_said(&w->file.messages),
			    "'main.weir' is not applied: it is revision 1001, which revision 1002 "
			    "has replaced");
	change(w, "two");
	assert_true(starts(w));
}

static void a_refused_file_is_tried_later_and_later(void **state)
{
	struct world *w = *state;
	uint64_t pause = FIRST_MS;

	change(w, "two");
	for (int n = 0; n < 9; n++) {
		assert_true(starts(w));
		assert_int_equal(w->file.due_ms, 0);
		refuse(w, "it has errors", "line 1");
		assert_int_equal(w->file.due_ms, w->now.ms + pause);
		w->now.ms = w->file.due_ms;
		file_plan_due(&w->file, &w->seen);
		pause = pause * 2 < MOST_MS ? pause * 2 : MOST_MS;
	}
}

static void a_file_that_was_refused_at_the_start_too(void **state)
{
	struct world *w = *state;

	trouble_begin(&w->refused, "it has errors");
	file_plan_start(&w->file, &w->seen, false, "1001", &w->now);
	assert_false(starts(w));
	assert_int_equal(w->file.due_ms, w->now.ms + FIRST_MS);
}

static void a_failure_with_a_change_is_tried_at_once(void **state)
{
	struct world *w = *state;

	change(w, "two");
	assert_true(starts(w));
	change(w, "three");
	refuse(w, "it has errors", "");
	assert_int_equal(w->file.due_ms, 0);
	assert_true(starts(w));
}

static void the_same_failure_is_logged_once(void **state)
{
	struct world *w = *state;

	assert_true(refuse(w, "it has errors", "unknown word 'nonsense'"));
	assert_false(refuse(w, "it has errors", "unknown word 'nonsense'"));
	assert_true(refuse(w, "it has errors", "unknown word 'rubbish'"));
	assert_true(refuse(w, "it would cut off a login", "unknown word 'rubbish'"));
	file_plan_succeeded(&w->file);
	assert_null(w->refused.why);
	assert_true(refuse(w, "it would cut off a login", "unknown word 'rubbish'"));
}

static void a_command_may_have_applied_what_was_refused(void **state)
{
	struct world *w = *state;

	assert_false(file_plan_awaits(&w->file));
	change(w, "two");
	assert_true(starts(w));
	refuse(w, "it has errors", "");
	assert_true(file_plan_awaits(&w->file));
	file_plan_accepted(&w->file, &w->seen, "1001");
	assert_false(starts(w));
	file_plan_accepted(&w->file, &w->seen, "1002");
	assert_true(starts(w));
	assert_false(file_plan_awaits(&w->file));
}

static void a_file_that_is_gone_is_reported_once(void **state)
{
	struct world *w = *state;

	change(w, "two");
	assert_true(starts(w));
	refuse(w, "it has errors", "");
	change(w, "");
	change(w, "");
	assert_false(starts(w));
	assert_true(w->file.gone);
	assert_int_equal(w->file.messages.n, 1);
	assert_string_equal(last_said(&w->file.messages),
			    "'main.weir' no longer exists; the active policy stays");
	assert_null(w->refused.why);
	assert_int_equal(w->file.due_ms, 0);
	change(w, "three");
	assert_false(w->file.gone);
	assert_true(starts(w));
}

static void a_named_file_that_never_existed_is_an_error_of_its_apply(void **state)
{
	struct world *w = *state;

	write_text(w, "");
	file_plan_want(&w->file, &w->seen, false);
	assert_true(starts(w));
}

static void the_default_file_need_not_exist(void **state)
{
	struct world *w = *state;

	w->seen.optional = true;
	write_text(w, "");
	file_plan_start(&w->file, &w->seen, true, "", &w->now);
	file_plan_changed(&w->file, &w->seen);
	assert_false(starts(w));
	assert_false(w->file.gone);
	assert_int_equal(w->file.messages.n, 0);
	change(w, "one");
	assert_true(starts(w));
}

static void a_reload_accepts_that_the_default_file_is_gone(void **state)
{
	struct world *w = *state;

	w->seen.optional = true;
	change(w, "");
	assert_true(w->file.gone);
	assert_false(file_plan_reload(&w->file, &w->seen));
	assert_false(w->file.gone);
	assert_false(file_plan_ends_reload(&w->file));
}

static void a_reload_ends_with_the_last_apply(void **state)
{
	struct world *w = *state;

	change(w, "two");
	assert_true(starts(w));
	assert_true(file_plan_reload(&w->file, &w->seen));
	assert_false(file_plan_reload(&w->file, &w->seen));
	assert_false(file_plan_ends_reload(&w->file));
	file_plan_succeeded(&w->file);
	assert_false(file_plan_ends_reload(&w->file));
	assert_true(starts(w));
	refuse(w, "it has errors", "");
	assert_true(file_plan_ends_reload(&w->file));
	assert_false(file_plan_ends_reload(&w->file));
}

// ---- the active policy --------------------------------------------------------------------------

static void databases_may_have_changed_before_the_first_look(void **state)
{
	struct world *w = *state;

	assert_false(again_plan_look(&w->again, "1001", true)); // a trial
	assert_true(again_plan_look(&w->again, "1001", false));
	again_plan_read(&w->again, true, &w->now);
	assert_int_equal(w->again.due_ms, w->now.ms);
	assert_string_equal(w->again.changed, "databases");
	assert_true(again_plan_begin(&w->again));
	again_plan_succeeded(&w->again, false, &w->now);
	assert_int_equal(w->again.due_ms, 0);
	assert_false(again_plan_look(&w->again, "1001", false));
	assert_true(again_plan_look(&w->again, "1002", false));
	again_plan_read(&w->again, true, &w->now);
	assert_int_equal(w->again.due_ms, 0);
}

static void a_policy_without_places_waits_for_its_feeds(void **state)
{
	struct world *w = *state;

	again_plan_look(&w->again, "1001", false);
	again_plan_read(&w->again, false, &w->now);
	assert_int_equal(w->again.due_ms, 0);
	again_plan_feed(&w->again, "https://lab/list", &w->now);
	assert_int_equal(w->again.due_ms, w->now.ms);
	assert_string_equal(w->again.changed, "feeds");
	assert_string_equal(w->again.feed, "https://lab/list");
}

static void databases_of_the_file_only(void **state)
{
	struct world *w = *state;

	again_plan_look(&w->again, "1001", false);
	again_plan_read(&w->again, false, &w->now);
	again_plan_databases(&w->again, &w->now);
	assert_int_equal(w->again.due_ms, 0);
	assert_true(w->again.file);
	assert_false(w->again.offline);
}

static void two_feeds_have_no_single_author(void **state)
{
	struct world *w = *state;

	again_plan_feed(&w->again, "https://lab/a", &w->now);
	again_plan_feed(&w->again, "https://lab/a", &w->now);
	assert_string_equal(w->again.feed, "https://lab/a");
	again_plan_feed(&w->again, "https://lab/b", &w->now);
	assert_null(w->again.feed);
	assert_true(again_plan_begin(&w->again));
	again_plan_succeeded(&w->again, false, &w->now);
	again_plan_feed(&w->again, "https://lab/b", &w->now);
	assert_string_equal(w->again.feed, "https://lab/b");
	again_plan_databases(&w->again, &w->now);
	assert_null(w->again.feed);
}

static void a_change_during_an_apply_is_another_apply(void **state)
{
	struct world *w = *state;

	again_plan_databases(&w->again, &w->now);
	assert_true(again_plan_begin(&w->again));
	again_plan_databases(&w->again, &w->now);
	again_plan_databases(&w->again, &w->now);
	assert_false(again_plan_begin(&w->again));
	again_plan_succeeded(&w->again, true, &w->now);
	assert_false(w->again.file);
	assert_int_equal(w->again.due_ms, w->now.ms);
	assert_true(again_plan_begin(&w->again));
	again_plan_succeeded(&w->again, false, &w->now);
	assert_int_equal(w->again.due_ms, 0);
}

static void a_refused_file_may_have_waited_for_the_same(void **state)
{
	struct world *w = *state;

	again_plan_databases(&w->again, &w->now);
	again_plan_begin(&w->again);
	again_plan_succeeded(&w->again, true, &w->now);
	assert_true(w->again.file);
	assert_true(w->again.offline);
}

static void failures_are_logged_once_and_tried_later_and_later(void **state)
{
	struct world *w = *state;

	again_plan_databases(&w->again, &w->now);
	again_plan_begin(&w->again);
	assert_true(again_plan_failed(&w->again, "2 packets would pass", "1001", &w->now));
	assert_string_equal(last_said(&w->again.messages),
			    "the databases of the policy have changed, but 2 packets would pass; "
			    "the active policy stays");
	assert_int_equal(w->again.due_ms, w->now.ms + FIRST_MS);
	again_plan_begin(&w->again);
	assert_true(again_plan_failed(&w->again, "3 packets would pass", "1001", &w->now));
	assert_int_equal(w->again.messages.n, 1);
	assert_int_equal(w->again.due_ms, w->now.ms + 2 * FIRST_MS);
	again_plan_begin(&w->again);
	again_plan_succeeded(&w->again, false, &w->now);
	assert_null(w->again.trouble.why);
}

static void another_policy_that_has_come_is_no_failure(void **state)
{
	struct world *w = *state;

	again_plan_databases(&w->again, &w->now);
	again_plan_begin(&w->again);
	assert_false(again_plan_failed(&w->again, "it is not active", "1002", &w->now));
	assert_null(w->again.trouble.why);
	assert_int_equal(w->again.due_ms, w->now.ms + 1000);
	again_plan_begin(&w->again);
	assert_true(again_plan_failed(&w->again, "it cannot be read", NULL, &w->now));
}

int main(void)
{
#define TEST(name)    cmocka_unit_test_setup_teardown(name, begin, end)
#define APPLIED(name) cmocka_unit_test_setup_teardown(name, begin_applied, end)
#define ACTIVE(name)  cmocka_unit_test_setup_teardown(name, begin_active, end)
	const struct CMUnitTest tests[] = {
		APPLIED(a_file_that_was_applied_waits_for_a_change),
		TEST(a_file_that_comes_during_the_start_is_applied),
		APPLIED(one_apply_at_a_time_and_one_after_it),
		APPLIED(copies_of_feeds_are_used_if_all_reasons_allow_it),
		APPLIED(a_replaced_revision_is_applied_only_when_it_is_written),
		APPLIED(a_refused_file_is_tried_later_and_later),
		TEST(a_file_that_was_refused_at_the_start_too),
		APPLIED(a_failure_with_a_change_is_tried_at_once),
		APPLIED(the_same_failure_is_logged_once),
		APPLIED(a_command_may_have_applied_what_was_refused),
		APPLIED(a_file_that_is_gone_is_reported_once),
		TEST(a_named_file_that_never_existed_is_an_error_of_its_apply),
		TEST(the_default_file_need_not_exist),
		APPLIED(a_reload_accepts_that_the_default_file_is_gone),
		APPLIED(a_reload_ends_with_the_last_apply),
		TEST(databases_may_have_changed_before_the_first_look),
		TEST(a_policy_without_places_waits_for_its_feeds),
		TEST(databases_of_the_file_only),
		ACTIVE(two_feeds_have_no_single_author),
		ACTIVE(a_change_during_an_apply_is_another_apply),
		ACTIVE(a_refused_file_may_have_waited_for_the_same),
		ACTIVE(failures_are_logged_once_and_tried_later_and_later),
		ACTIVE(another_policy_that_has_come_is_no_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
