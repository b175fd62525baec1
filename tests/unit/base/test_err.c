// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/err.c.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "ctl/base/err.h"

static void test_input(void **state)
{
	struct err err = {0};

	assert_int_equal(err_input(&err, "unknown set '@%s'", "x"), -EINVAL);
	assert_int_equal(err.kind, ERR_INPUT);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.text, "unknown set '@x'");
	assert_string_equal(err.hint, "");
	assert_int_equal(err_hint(&err, "did you mean '@%s'?", "y"), -EINVAL);
	assert_string_equal(err.hint, "did you mean '@y'?");
}

static void test_system(void **state)
{
	struct err err = {0};

	assert_int_equal(err_system(&err, ENOENT, "cannot open '%s'", "f"), -ENOENT);
	assert_int_equal(err.kind, ERR_SYSTEM);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.text, "cannot open 'f': it does not exist");
	assert_int_equal(err_hint(&err, "is it mounted?"), -ENOENT);

	assert_int_equal(err_system(&err, -EBUSY, "attach"), -EBUSY);
	assert_int_equal(err.code, EBUSY);
	assert_string_equal(err.text, "attach: in use");
	assert_string_equal(err.hint, "");
	assert_true(err_system(&err, 0, "lost its errno") < 0);
}

// One errno of a system call that has many causes, and a sentence that has the cause.
static void test_cause(void **state)
{
	struct err err = {0};

	assert_int_equal(err_system(&err, EINVAL, "cannot link '%s'", "x"), -EINVAL);
	assert_string_equal(err.text, "cannot link 'x' (EINVAL)");
	assert_int_equal(err_stated(&err, -EBADMSG, "'%s' is damaged", "x"), -EBADMSG);
	assert_int_equal(err.kind, ERR_SYSTEM);
	assert_int_equal(err.code, EBADMSG);
	assert_string_equal(err.text, "'x' is damaged");
	assert_int_equal(err_stated(NULL, ENOSPC, "x"), -ENOSPC);
	assert_string_equal(err_why(-ENOSPC), "no space left");
	assert_string_equal(err_why(EINVAL), "EINVAL");
}

static void test_refused(void **state)
{
	struct err err = {0};

	assert_int_equal(err_refused(&err, "a trial is pending"), -EPERM);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(err_hint(&err, "weir confirm"), -EPERM);
	assert_string_equal(err.text, "a trial is pending");
	assert_string_equal(err.hint, "weir confirm");
}

static void test_nobody_listens(void **state)
{
	assert_int_equal(err_input(NULL, "x"), -EINVAL);
	assert_int_equal(err_system(NULL, ENOSPC, "x"), -ENOSPC);
	assert_int_equal(err_refused(NULL, "x"), -EPERM);
	assert_int_equal(err_hint(NULL, "x"), -EINVAL);
	err_prefix(NULL, "x");
	err_clear(NULL);
}

static void test_prefix(void **state)
{
	struct err err = {0};

	err_prefix(&err, "nothing");
	assert_string_equal(err.text, "");
	err_system(&err, ENOENT, "cannot open 'b'");
	err_hint(&err, "hint");
	err_prefix(&err, "line %d", 3);
	err_prefix(&err, "'%s'", "a.weir");
	assert_string_equal(err.text, "'a.weir': line 3: cannot open 'b': it does not exist");
	assert_string_equal(err.hint, "hint");
	assert_int_equal(err.code, ENOENT);
}

static void test_full(void **state)
{
	struct err err = {0};
	err_full_text full;

	err_system(&err, ENOENT, "cannot open 'x'");
	assert_string_equal(err_full(&err, full), "cannot open 'x': it does not exist");
	err_hint(&err, "is it mounted?");
	assert_string_equal(err_full(&err, full),
			    "cannot open 'x': it does not exist (is it mounted?)");
	err = (struct err){0};
	memset(err.text, 't', sizeof(err.text) - 1);
	memset(err.hint, 'h', sizeof(err.hint) - 1);
	assert_int_equal(strlen(err_full(&err, full)), sizeof(full) - 1 - 1);
	assert_string_equal(full + strlen(full) - 2, "h)");
}

static void test_clear(void **state)
{
	struct err err = {0};

	err_system(&err, EIO, "x");
	err_hint(&err, "y");
	err_clear(&err);
	assert_int_equal(err.kind, ERR_NONE);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.text, "");
	assert_string_equal(err.hint, "");
}

// The new sentence may contain the error that it replaces.
static void test_arguments_from_itself(void **state)
{
	struct err err = {0};

	err_input(&err, "inner");
	err_hint(&err, "first");
	err_hint(&err, "%s, second", err.hint);
	assert_string_equal(err.hint, "first, second");
	err_refused(&err, "outer: %s", err.text);
	assert_string_equal(err.text, "outer: inner");
	err_system(&err, EIO, "more: %s", err.text);
	assert_string_equal(err.text, "more: outer: inner: input or output error");
	err_prefix(&err, "%s", err.text);
	assert_string_equal(err.text,
			    "more: outer: inner: input or output error: more: outer: inner: "
			    "input or output error");
}

static void test_cuts_what_is_too_long(void **state)
{
	struct err err = {0};
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	err_system(&err, ENOENT, "%s", text);
	assert_true(strlen(err.text) < sizeof(err.text));
	assert_string_equal(err.text + strlen(err.text) - 22, "...: it does not exist");
	err_input(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + strlen(err.text) - 4, "x...");
	text[sizeof(err.text)] = '\0'; // one byte too long, then as long as fits
	err_input(&err, "%s", text);
	assert_string_equal(err.text + sizeof(err.text) - 5, "x...");
	text[sizeof(err.text) - 1] = '\0';
	err_input(&err, "%s", text);
	assert_string_equal(err.text, text);
	err_hint(&err, "%s", text);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	assert_string_equal(err.hint + strlen(err.hint) - 3, "...");
	err_prefix(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void test_names(void **state)
{
	for (int code = 1; code < 200; code++)
		if (err_name_of(code))
			assert_string_equal(err_name_of(code), strerrorname_np(code));
	assert_string_equal(err_name_of(E2BIG), "E2BIG");
	assert_null(err_name_of(4711));
	assert_string_equal(err_name(ENOENT), "ENOENT");
	assert_string_equal(err_name(-ENOENT), "ENOENT");
	assert_string_equal(err_name(EOPNOTSUPP), "EOPNOTSUPP");
	assert_string_equal(err_name(-524), "ENOTSUPP");
	assert_string_equal(err_name(4711), "errno 4711");
	assert_string_equal(err_name(-4711), "errno 4711");
	assert_string_equal(err_name(0), "errno 0");
	assert_string_equal(err_name(INT_MAX), "errno 2147483647");
	assert_string_equal(err_name(INT_MIN), "errno -2147483648");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_cause),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_arguments_from_itself),
		cmocka_unit_test(test_cuts_what_is_too_long),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
