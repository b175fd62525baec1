// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/cells.h: no text takes more cells than it has, or controls a terminal.
#include "tests/unit/base/unit.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "ctl/base/cells.h"

static void assert_cells(const char *s, size_t width, bool utf8, const char *want)
{
	CLEANUP_TEXT struct text t = {0};

	cells_add(&t, s, width, utf8);
	assert_string_equal(text_get(&t), want);
}

static void test_plain(void **state)
{
	assert_cells("abc", 5, true, "abc  ");
	assert_cells("abc", 3, true, "abc");
	assert_cells("abcdef", 4, true, "abc\u2026");
	assert_cells("abcdef", 4, false, "a...");
	assert_cells("abcdef", 3, false, "abc"); // no room for more than the dots
	assert_cells("abcdef", 1, true, "a");
	assert_cells("abcdef", 0, true, "");
	assert_cells("", 2, false, "  ");
}

static void test_wide(void **state)
{
	assert_int_equal(cells_width("\u9632\u706b", true), 4);
	assert_int_equal(cells_width("\u9632\u706b", false), 2);
	assert_cells("\u9632\u706b", 4, true, "\u9632\u706b");
	assert_cells("\u9632\u706b\u5899", 4, true,
		     "\u9632\u2026 "); // half a character does not fit
	assert_cells("\u9632\u706b\u5899", 5, true, "\u9632\u706b\u2026");
	assert_cells("\u9632", 1, true, " ");
	assert_cells("\u00fc\u9632", 4, false, "??  ");
}

// Neither what controls, nor what has no cell of its own, reaches the terminal.
static void test_hostile(void **state)
{
	assert_cells("a\x1b[2Jb", 9, true, "a?[2Jb   ");
	assert_cells("a\tb\x7f\n", 5, true, "a?b??");
	assert_cells("\u202eab\u2066", 4, true, "?ab?");
	assert_cells("\x9b"
		     "1m\xff",
		     4, true, "?1m?");
	assert_cells("e\u0301\u200d\u200b\ufe0f", 5, true, "e????");
	assert_cells("\xe9\x98", 2, true, "??"); // cut off
}

static void test_right(void **state)
{
	CLEANUP_TEXT struct text t = {0};

	cells_add_right(&t, "12", 4, true);
	cells_add_right(&t, "12345", 4, true);
	cells_add_right(&t, "\u9632", 3, true);
	assert_string_equal(text_get(&t), "  12123\u2026 \u9632");
}

static void test_spark(void **state)
{
	const double values[] = {0, 0.001, 50, 100}, none[] = {0, 0};
	CLEANUP_TEXT struct text t = {0};

	cells_add_spark(&t, values, 4, false);
	cells_add_spark(&t, none, 2, false);
	assert_string_equal(text_get(&t), " .=@  ");
	t.len = 0;
	cells_add_spark(&t, values, 4, true);
	assert_string_equal(text_get(&t), " \u2581\u2584\u2588");
}

// Random bytes in any width: exactly so many cells, nothing that a terminal obeys.
static void test_random(void **state)
{
	static const char *const parts[] = {"\x1b", "\u202e", "\u9632",     "\u0301", "\x80",
					    "\xe2", "z",      "\U0001f525", "\u00fc", "\u200d"};
	uint64_t seed = 7;

	for (unsigned turn = 0; turn < 20000; turn++) {
		CLEANUP_TEXT struct text in = {0}, shown = {0};
		size_t width = unit_below(&seed, 12);
		bool utf8 = turn % 2;

		text_add(&in, "");
		for (unsigned n = unit_below(&seed, 10); n; n--)
			text_add(&in, parts[unit_below(&seed, ARRAY_SIZE(parts))]);
		cells_add(&shown, text_get(&in), width, utf8);
		assert_int_equal(cells_width(text_get(&shown), true), width);
		for (size_t at = 0, n; at < shown.len; at += n) {
			n = text_shown(shown.at + at, shown.len - at);
			assert_true(n && (utf8 || n == 1));
			assert_true(n == 1 ||
				    wcwidth((wchar_t)text_code_point(shown.at + at, n)) > 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),   cmocka_unit_test(test_wide),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_right),
		cmocka_unit_test(test_spark),   cmocka_unit_test(test_random),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
