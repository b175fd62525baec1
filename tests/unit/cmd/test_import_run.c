// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/import_run: input and output of a program, and every way to fail.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/time.h"
#include "ctl/cmd/import_run.h"

static void test_output(void **state)
{
	CLEANUP_TEXT struct text got = {0};
	struct err err = {0};

	assert_int_equal(import_run((const char *const[]){"cat", NULL}, "coreutils", "a\nb", 3, 10,
				    &got, &err),
			 0);
	assert_string_equal(got.at, "a\nb");
}

static const struct {
	const char *words[4], *message;
} bad[] = {
	{{"no-such-program", NULL}, "no-such-program is not installed (package coreutils)"},
	{{"false", NULL}, "false exited with status 1"},
	{{"cat", "/no/such/file", NULL}, "cat: /usr/bin/cat: /no/such/file: No such file"},
	{{"sleep", "100", NULL}, "sleep did not end within 1 second"},
};

static void test_failures(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP_TEXT struct text got = {0};
		struct err err = {0};
		uint64_t start = time_ms(CLOCK_MONOTONIC);

		assert_true(import_run(bad[i].words, "coreutils", "", 0, 1, &got, &err) < 0);
		if (!strstr(err.text, bad[i].message))
			fail_msg("%s", err.text);
		assert_int_equal(got.len, 0);
		assert_in_range(time_ms(CLOCK_MONOTONIC) - start, 0, 20000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
