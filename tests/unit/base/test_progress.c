// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/progress.h.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/progress.h"

static char told[1024];

static void hear(const char *text)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s|", text ? text : "-");
}

static void fetch(void)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("fetching '%s'", "a");

	progress_change("fetching '%s'", "b");
}

static void apply(void)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("applying");

	fetch();
}

static void test_operations_contain_others(void **state)
{
	told[0] = '\0';
	progress_to(hear);
	apply();
	progress_to(NULL);
	apply();
	assert_string_equal(told, "applying|fetching 'a'|fetching 'b'|applying|-|");
}

static void nest(unsigned left)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("%u", left);

	if (left)
		nest(left - 1);
}

static void test_any_depth(void **state)
{
	told[0] = '\0';
	progress_to(hear);
	nest(10);
	progress_to(NULL);
	assert_string_equal(told, "10|9|8|7|6|5|4|3|3|3|3|3|3|3|4|5|6|7|8|9|10|-|");
}

static void test_a_long_text_is_cut(void **state)
{
	char text[400];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	told[0] = '\0';
	progress_to(hear);
	{
		CLEANUP_PROGRESS unsigned operation = progress_begin("%s", text);
	}
	progress_to(NULL);
	assert_int_equal(strlen(told), 255 + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations_contain_others),
		cmocka_unit_test(test_any_depth),
		cmocka_unit_test(test_a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
