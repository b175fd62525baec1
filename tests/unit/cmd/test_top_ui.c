// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/top_ui.h: what each key changes, and that no key leads outside.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/cmd/screen.h"
#include "ctl/cmd/top_ui.h"

static void type(struct top_ui *ui, const char *keys)
{
	for (; *keys; keys++)
		top_ui_key(ui, (unsigned char)*keys);
}

static void test_views(void **state)
{
	struct top_ui ui = top_ui_new();

	assert_int_equal(ui.view, TOP_OVERVIEW);
	type(&ui, "3");
	assert_int_equal(ui.view, TOP_RULES);
	type(&ui, "\tv");
	assert_int_equal(ui.view, TOP_OWNERS);
	type(&ui, "0\t");
	assert_int_equal(ui.view, TOP_OVERVIEW);
	top_ui_key(&ui, SCREEN_TAB_BACK);
	assert_int_equal(ui.view, TOP_PORTS);
	top_ui_key(&ui, SCREEN_LEFT);
	assert_int_equal(ui.view, TOP_DESTINATIONS);
	type(&ui, "8");
	assert_int_equal(ui.view, TOP_SOURCES);
	type(&ui, "6:");
	assert_int_equal(ui.view, TOP_SERVICES);
}

static void test_choice(void **state)
{
	struct top_ui ui = top_ui_new();

	assert_int_equal(ui.choice.sort, TOP_BY_10S);
	type(&ui, "srbp");
	assert_int_equal(ui.choice.sort, TOP_BY_60S);
	assert_true(ui.choice.reverse && ui.choice.bits && ui.paused && !ui.ended);
	type(&ui, "srbp");
	assert_int_equal(ui.choice.sort, TOP_BY_NAME);
	assert_false(ui.choice.reverse || ui.choice.bits || ui.paused);
	type(&ui, "h");
	assert_true(ui.help);
	top_ui_key(&ui, SCREEN_ESCAPE);
	assert_false(ui.help);
	type(&ui, "?2");
	assert_false(ui.help);
	assert_int_equal(ui.view, TOP_REASONS);
	type(&ui, "q");
	assert_true(ui.ended);
}

static void test_filter(void **state)
{
	struct top_ui ui = top_ui_new();

	type(&ui, "/q\u00fc");
	assert_true(ui.editing && !ui.ended);
	assert_string_equal(ui.choice.filter, "q\u00fc");
	top_ui_key(&ui, SCREEN_BACKSPACE);
	assert_string_equal(ui.choice.filter, "q");
	type(&ui, "\x01\x1f");
	top_ui_key(&ui, SCREEN_UP);
	assert_string_equal(ui.choice.filter, "q");
	top_ui_key(&ui, SCREEN_ENTER);
	assert_false(ui.editing);
	assert_string_equal(ui.choice.filter, "q");
	top_ui_key(&ui, SCREEN_ESCAPE);
	assert_string_equal(ui.choice.filter, "");
	type(&ui, "f");
	top_ui_key(&ui, SCREEN_BACKSPACE);
	for (unsigned n = 0; n < 1000; n++)
		type(&ui, "x");
	assert_int_equal(strlen(ui.choice.filter), TOP_FILTER);
	top_ui_key(&ui, SCREEN_ESCAPE);
	assert_false(ui.editing);
}

static void test_scroll(void **state)
{
	struct top_ui ui = top_ui_new();

	top_ui_fit(&ui, 25, 10);
	top_ui_key(&ui, SCREEN_UP);
	assert_int_equal(ui.first, 0);
	top_ui_key(&ui, SCREEN_DOWN);
	assert_int_equal(ui.first, 1);
	top_ui_key(&ui, SCREEN_PAGE_DOWN);
	assert_int_equal(ui.first, 11);
	type(&ui, " ");
	assert_int_equal(ui.first, 15);
	top_ui_key(&ui, SCREEN_PAGE_UP);
	top_ui_key(&ui, SCREEN_PAGE_UP);
	assert_int_equal(ui.first, 0);
	top_ui_key(&ui, SCREEN_END);
	assert_int_equal(ui.first, 15);
	top_ui_fit(&ui, 12, 10); // fewer rows
	assert_int_equal(ui.first, 2);
	type(&ui, "3");
	assert_int_equal(ui.first, 0);
	top_ui_fit(&ui, 0, 0);
	top_ui_key(&ui, SCREEN_PAGE_DOWN);
	assert_int_equal(ui.first, 0);
}

// Any keys in any order keep every value in its range.
static void test_random(void **state)
{
	struct top_ui ui = top_ui_new();
	uint64_t seed = 11;

	for (unsigned n = 0; n < 100000; n++) {
		top_ui_key(&ui, (int)unit_below(&seed, SCREEN_OTHER + 2) - 1);
		top_ui_fit(&ui, unit_below(&seed, 30), unit_below(&seed, 30));
		assert_true(ui.view < TOP_VIEWS && ui.choice.sort < TOP_SORTS);
		assert_true(strlen(ui.choice.filter) <= TOP_FILTER);
		assert_true(!ui.first || ui.first + ui.page <= ui.rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views),  cmocka_unit_test(test_choice),
		cmocka_unit_test(test_filter), cmocka_unit_test(test_scroll),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
