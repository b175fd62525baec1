// SPDX-License-Identifier: GPL-2.0-only
// When a failure is to be logged, how long the pauses are, and the failures of many objects.
#include "ctl/agent/trouble.h"

#include "tests/unit/base/unit.h"

static void begins_changes_and_ends_once(void **state)
{
	struct trouble t = {0};

	assert_false(trouble_end(&t));
	assert_true(trouble_begin(&t, "line 3: bad"));
	assert_false(trouble_begin(&t, "line 3: bad"));
	assert_true(trouble_begin(&t, "line 4: bad"));
	assert_int_equal(t.times, 3);
	assert_true(trouble_end(&t));
	assert_false(trouble_end(&t));
	assert_int_equal(t.times, 0);
}

static void numbers_make_no_other_failure(void **state)
{
	static const struct {
		const char *a, *b;
		bool like;
	} rows[] = {
		{"cut after 10 of 200 bytes", "cut after 9 of 35 bytes", true},
		{"7 lines", "12 lines", true},
		{"line 3: bad", "line 4: worse", false},
		{"a 1", "a", false},
		{"404", "500", true},
		{"the same", "the same", true},
		{"the same", "the same, and more", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct trouble t = {0};

		assert_true(trouble_begin_like(&t, rows[i].a));
		assert_int_equal(trouble_begin_like(&t, rows[i].b), !rows[i].like);
		assert_string_equal(t.why, rows[i].b); // as reported
		trouble_end(&t);
	}
}

static void pauses_double(void **state)
{
	static const uint64_t expected[] = {10, 10, 20, 40, 80, 160, 300, 300};

	for (unsigned times = 0; times < sizeof(expected) / sizeof(*expected); times++)
		assert_int_equal(trouble_pause_ms(times, 10, 300), expected[times]);
	assert_int_equal(trouble_pause_ms(4000000000, 10000, 600000), 600000);
	assert_int_equal(trouble_pause_ms(1, 10000, 5000), 5000);
}

static void is_a_problem_while_it_lasts(void **state)
{
	CLEANUP_JSON struct json *problems = json_array();
	struct trouble t = {0};

	trouble_report(&t, "work", problems);
	assert_int_equal(json_length(problems), 0);
	trouble_begin(&t, "it fails");
	trouble_report(&t, "work", problems);
	trouble_report(&t, NULL, problems);
	assert_string_equal(json_text(json_at(problems, 0)), "work: it fails");
	assert_string_equal(json_text(json_at(problems, 1)), "it fails");
	trouble_end(&t);
}

static void note_over(void *ctx, const char *name, const char *why)
{
	const char **over = ctx;

	assert_string_equal(why, "no database");
	assert_null(*over);
	*over = name[0] == 'D' ? "DE" : "other";
}

static void objects_that_are_not_noted_work_again(void **state)
{
	struct troubles t = {0};
	const char *over = NULL;

	troubles_begin(&t);
	assert_true(troubles_note(&t, "DE", "no database"));
	assert_true(troubles_note(&t, "FR", "no database"));
	troubles_end(&t, note_over, &over);
	assert_null(over);
	troubles_begin(&t);
	assert_false(troubles_note(&t, "FR", "no database"));
	assert_string_equal(troubles_why(&t, "DE"), "no database"); // until the end of the look
	troubles_end(&t, note_over, &over);
	assert_string_equal(over, "DE");
	assert_null(troubles_why(&t, "DE"));
	assert_int_equal(t.all.n, 1);
	troubles_begin(&t);
	assert_true(troubles_note(&t, "FR", "damaged"));
	troubles_end(&t, NULL, NULL);
	assert_string_equal(troubles_why(&t, "FR"), "damaged");
	troubles_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_changes_and_ends_once),
		cmocka_unit_test(numbers_make_no_other_failure),
		cmocka_unit_test(pauses_double),
		cmocka_unit_test(is_a_problem_while_it_lasts),
		cmocka_unit_test(objects_that_are_not_noted_work_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
