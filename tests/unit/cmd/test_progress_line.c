// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/progress_line.h; the time is an argument.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/cmd/progress_line.h"

static void check_line(const struct progress_line *l, uint64_t now_ms, size_t columns,
		       const char *wanted)
{
	CLEANUP_TEXT struct text text = {0};

	progress_line_write(l, now_ms, columns, &text);
	assert_string_equal(text_get(&text), wanted);
}

static void test_a_short_operation_has_no_line(void **state)
{
	struct progress_line l = {0};

	assert_int_equal(progress_line_due_ms(&l, 5), UINT64_MAX);
	progress_line_tell(&l, "loading", 5000);
	assert_int_equal(progress_line_due_ms(&l, 5000), 6000);
	check_line(&l, 5999, 80, "");
	progress_line_tell(&l, NULL, 5999);
	assert_int_equal(progress_line_due_ms(&l, 5999), UINT64_MAX);
	check_line(&l, 60000, 80, "");
}

static void test_the_time_advances(void **state)
{
	struct progress_line l = {0};

	progress_line_tell(&l, "loading", 5000);
	check_line(&l, 6000, 80, "weir: loading (1s)");
	assert_int_equal(progress_line_due_ms(&l, 6000), 7000);
	progress_line_tell(&l, "testing", 6100); // inside
	check_line(&l, 6999, 80, "weir: testing (1s)");
	assert_int_equal(progress_line_due_ms(&l, 7350), 8000);
	check_line(&l, 5000 + 61500, 80, "weir: testing (1m 1s)");
}

static void test_operations_that_follow_closely_share_a_time(void **state)
{
	struct progress_line l = {0};

	progress_line_tell(&l, "a", 0); // a clock may begin here
	progress_line_tell(&l, NULL, 800);
	progress_line_tell(&l, "b", 1000);
	assert_int_equal(progress_line_due_ms(&l, 800), 1000);
	check_line(&l, 1000, 80, "weir: b (1s)");
	progress_line_tell(&l, NULL, 1100);
	progress_line_tell(&l, "c", 1301);
	check_line(&l, 2300, 80, "");
	check_line(&l, 2301, 80, "weir: c (1s)");
}

static void test_a_message_has_its_time(void **state)
{
	struct progress_line l = {0};

	progress_line_tell(&l, "loading", 0);
	progress_line_logged(&l, 700);
	assert_int_equal(progress_line_due_ms(&l, 0), 2000);
	progress_line_logged(&l, 1400);
	assert_int_equal(progress_line_due_ms(&l, 0), 2000);
	progress_line_logged(&l, 1600);
	assert_int_equal(progress_line_due_ms(&l, 0), 3000);
}

static void test_any_width(void **state)
{
	struct progress_line l = {0};

	progress_line_tell(&l, "fetching 'http://\x1b[2J\xc3\xa4'", 0);
	check_line(&l, 1000, 80, "weir: fetching 'http://?[2J?' (1s)");
	check_line(&l, 1000, 35, "weir: fetching 'http://?[2J?' (1s)");
	check_line(&l, 1000, 34, "weir: fetching 'http://?[... (1s)");
	check_line(&l, 1000, 13, "weir: f (1s)");
	check_line(&l, 1000, 12, "");
	check_line(&l, 1000, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_short_operation_has_no_line),
		cmocka_unit_test(test_the_time_advances),
		cmocka_unit_test(test_operations_that_follow_closely_share_a_time),
		cmocka_unit_test(test_a_message_has_its_time),
		cmocka_unit_test(test_any_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
