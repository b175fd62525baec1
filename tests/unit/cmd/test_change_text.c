// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/change_text.h.
#include "ctl/cmd/change_text.h"

#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

static void check(struct changelog_change c, const char *expected)
{
	CLEANUP_TEXT struct text t = {0};

	change_result(&t, &c);
	assert_string_equal(text_get(&t), expected);
}

static void test_results(void **state)
{
	check((struct changelog_change){.result = "done", .text = ""}, "done");
	check((struct changelog_change){.result = "refused", .text = "why"}, "refused: why");
	check((struct changelog_change){.result = "done",
					.text = "",
					.entries = true,
					.added = 3,
					.removed = 1,
					.changes = 12},
	      "done, 3 added, 1 removed (12 changes)");
	check((struct changelog_change){.result = "done", .text = "", .added = 3, .changes = 1},
	      "done");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_results)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
