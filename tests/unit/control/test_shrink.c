// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/shrink.h: changes of a file that an agent does not apply on its own.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/shrink.h"

static void test_what_is_lost(void **state)
{
	static const struct {
		struct policy_size before, now;
		enum shrink lost;
	} cases[] = {
		{{40, 0, false}, {40, 0, false}, SHRINK_NONE},
		{{40, 0, false}, {21, 0, false}, SHRINK_NONE},
		{{40, 0, false}, {20, 0, false}, SHRINK_RULES},
		{{40, 0, false}, {0, 0, false}, SHRINK_RULES},
		{{40, 0, false}, {80, 0, false}, SHRINK_NONE},
		{{5, 0, false}, {3, 0, false}, SHRINK_NONE},
		{{5, 0, false}, {2, 0, false}, SHRINK_RULES},
		{{4, 0, false}, {2, 0, false}, SHRINK_RULES},
		{{4, 0, false}, {3, 0, false}, SHRINK_NONE},
		{{3, 0, false}, {1, 0, false}, SHRINK_NONE}, // too few to tell
		{{3, 0, false}, {0, 0, false}, SHRINK_NONE},
		{{0, 0, false}, {0, 0, false}, SHRINK_NONE},
		{{1, 2, false}, {1, 1, false}, SHRINK_NONE},
		{{1, 2, false}, {1, 0, false}, SHRINK_SERVICES},
		{{1, 0, false}, {1, 2, false}, SHRINK_NONE},
		{{1, 0, true}, {1, 0, false}, SHRINK_DROPS},
		{{1, 0, true}, {1, 0, true}, SHRINK_NONE},
		{{1, 0, false}, {1, 0, true}, SHRINK_NONE},
		{{8, 1, true}, {4, 0, false}, SHRINK_RULES}, // the first one
		{{3, 1, true}, {1, 0, false}, SHRINK_SERVICES},
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++)
		if (shrink_of(&cases[n].before, &cases[n].now) != cases[n].lost)
			fail_msg("case %zu: %d", n,
				 (int)shrink_of(&cases[n].before, &cases[n].now));
}

static void refused(const struct policy_size *before, const struct policy_size *now,
		    const char *path, const char *instance, const char *text)
{
	struct err err = {0};

	assert_int_equal(shrink_refuse(before, now, path, "active", instance, &err), -EPERM);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_string_equal(err.text, text);
}

static void test_sentences(void **state)
{
	const struct policy_size before = {40, 2, true}, cut = {3, 2, true}, one = {1, 2, true},
				 bare = {40, 0, true}, open = {40, 2, false};
	struct err err = {0};

	refused(&before, &cut, "/etc/weir/main.weir", "main",
		"main.weir has 3 rules, the active policy 40: 'weir apply /etc/weir/main.weir' "
		"applies it");
	refused(&before, &one, "edge.weir", "main",
		"edge.weir has 1 rule, the active policy 40: 'weir apply edge.weir' applies it");
	refused(&before, &bare, "edge.weir", "two",
		"edge.weir has no service, the active policy 2: 'weir -n two apply edge.weir' "
		"applies it");
	refused(&before, &open, "edge.weir", "main",
		"edge.weir has no 'default drop', the active policy has one: 'weir apply edge.weir' "
		"applies it");
	assert_int_equal(shrink_refuse(&before, &before, "edge.weir", "active", "main", &err), 0);
	assert_string_equal(err.text, "");
}

static void test_size(void **state)
{
	struct resolved_interface ifaces[] = {{.name = "eth0"},
					      {.name = "eth1", .default_drop = true}};
	struct resolved r = {.n_rules = 7, .n_services = 2, .default_drop = true};
	struct policy_size size = policy_size(&r);

	assert_int_equal(size.rules, 7);
	assert_int_equal(size.services, 2);
	assert_true(size.drops);
	r.interfaces = ifaces;
	r.n_interfaces = 1; // which has a default of its own
	assert_false(policy_size(&r).drops);
	r.n_interfaces = 2;
	assert_true(policy_size(&r).drops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_lost),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
