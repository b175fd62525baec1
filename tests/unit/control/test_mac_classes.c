// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/mac_classes.c: each combination of lists has one address, and no
// combination has two.
#include "tests/unit/base/unit.h"

#include "ctl/control/mac_classes.h"

#define END (1ull << 48)

static size_t n_of(struct resolved_edges *lists, size_t n, bool *ret_cut)
{
	CLEANUP_MAC_CLASSES struct mac_classes classes = {0};
	const struct resolved r = {.macs = lists, .n_macs = n};

	mac_classes_find(&r, &classes);
	*ret_cut = classes.cut;
	return classes.of.n;
}

static void test_none(void **state)
{
	CLEANUP_MAC_CLASSES struct mac_classes classes = {0};
	const struct resolved r = {0};

	(void)state;
	mac_classes_find(&r, &classes);
	assert_int_equal(classes.of.n, 1);
	assert_false(classes.cut);
}

// The second list excludes one address of the first.
static void test_two_lists(void **state)
{
	static const uint64_t first[] = {10, 20}, second[] = {0, 15, 16, END};
	struct resolved_edges lists[] = {{first, 2}, {second, 4}};
	const struct resolved r = {.macs = lists, .n_macs = 2};
	static const uint64_t wanted[] = {0, 10, 15};
	CLEANUP_MAC_CLASSES struct mac_classes classes = {0};

	(void)state;
	mac_classes_find(&r, &classes);
	assert_int_equal(classes.of.n, 3);
	assert_memory_equal(classes.of.at, wanted, sizeof(wanted));
	assert_false(classes.cut);
}

// A list with many addresses is one class, and so is the same list again.
static void test_long_list(void **state)
{
	uint64_t edges[2000];
	struct resolved_edges lists[] = {{edges, 2000}, {edges, 2000}};
	bool cut;

	(void)state;
	for (uint64_t i = 0; i < 2000; i++)
		edges[i] = 100 + 3 * i;
	assert_int_equal(n_of(lists, 2, &cut), 2);
	assert_false(cut);
}

static void test_too_many(void **state)
{
	uint64_t edges[MAC_CLASSES_MAX][2];
	struct resolved_edges lists[MAC_CLASSES_MAX];
	bool cut;

	(void)state;
	for (uint64_t i = 0; i < MAC_CLASSES_MAX; i++) {
		edges[i][0] = 10 * i + 1;
		edges[i][1] = 10 * i + 2;
		lists[i] = (struct resolved_edges){edges[i], 2};
	}
	assert_int_equal(n_of(lists, MAC_CLASSES_MAX - 1, &cut), MAC_CLASSES_MAX);
	assert_false(cut);
	assert_int_equal(n_of(lists, MAC_CLASSES_MAX, &cut), MAC_CLASSES_MAX);
	assert_true(cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_two_lists),
		cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
