// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/capture_comment.h.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/capture_comment.h"

static bool reads(const char *text, struct capture_comment *ret)
{
	return capture_comment_read(text, strlen(text), ret);
}

static void test_texts(void **state)
{
	static const struct {
		struct capture_comment comment;
		const char *what, *text;
	} cases[] = {
		{{REASON_DROP_RULE, 0, UINT32_MAX},
		 ", rule \"ssh\"",
		 "drop rule-drop, rule \"ssh\", share 1 of 1"},
		{{REASON_PASS_DEFAULT, 0, 1u << 29}, "", "pass default, share 1 of 8.000"},
		{{REASON_PASS_SERVICE, 28, 1u << 22},
		 "",
		 "pass service, 28 bytes of headers added, share 1 of 1024"},
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		CLEANUP_TEXT struct text t = {0};
		struct capture_comment read = {0};

		capture_comment_write(&cases[n].comment, cases[n].what, &t);
		assert_string_equal(text_get(&t), cases[n].text);
		assert_true(reads(text_get(&t), &read));
		assert_memory_equal(&read, &cases[n].comment, sizeof(read));
	}
}

// A share is read within 0.5 %, and a reason by its name.
static void test_all_shares_and_reasons(void **state)
{
	for (uint64_t share = 1; share <= UINT32_MAX; share += share / 100 + 1) {
		struct capture_comment c = {.reason = (uint32_t)(share % WEIR_REASON_COUNT),
					    .share = (uint32_t)share};
		CLEANUP_TEXT struct text t = {0};
		struct capture_comment read = {0};

		capture_comment_write(&c, "", &t);
		assert_true(reads(text_get(&t), &read));
		assert_int_equal(read.reason, c.reason);
		assert_in_range(read.share, share - share / 200 - 1, share + share / 200 + 1);
	}
}

static void test_names_that_look_like_the_rest(void **state)
{
	struct capture_comment read;

	assert_true(reads("drop rule-drop, rule \"a, share 1 of 9\", share 1 of 2", &read));
	assert_int_equal(read.share, 1u << 31);
	assert_true(
		reads("drop rule-drop, rule \", 9 bytes of headers added\", share 1 of 1", &read));
	assert_int_equal(read.front, 0);
	assert_true(reads("reason 99, share 1 of 1", &read));
	assert_int_equal(read.reason, WEIR_REASON_COUNT);
}

static void test_other_comments(void **state)
{
	static const char *const others[] = {
		"",
		"share 1 of 1",
		", share 1 of 1",
		"a comment of somebody",
		"drop rule-drop",
		"drop rule-drop, share 1 of ",
		"drop rule-drop, share 1 of 0",
		"drop rule-drop, share 1 of 0.5",
		"drop rule-drop, share 1 of 1x",
		"drop rule-drop, share 1 of 1.2.3",
		"drop rule-drop, share 1 of -1",
		"drop rule-drop, share 1 of 9999999999999999999999",
		"drop rule-drop, share 1 of 4294967296.5",
		"pass rule-drop, share 1 of 1",
		"drop rule-dropped, share 1 of 1",
	};
	struct capture_comment read = {7, 7, 7};

	for (size_t n = 0; n < ARRAY_SIZE(others); n++) {
		assert_false(reads(others[n], &read));
		assert_int_equal(read.share, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_all_shares_and_reasons),
		cmocka_unit_test(test_names_that_look_like_the_rest),
		cmocka_unit_test(test_other_comments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
