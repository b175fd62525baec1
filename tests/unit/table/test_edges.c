// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of common/edges.h and ctl/table/edges.c: the search among the edges of several lists.
#include "tests/unit/base/unit.h"

#include <stdlib.h>

#include "common/edges.h"
#include "ctl/base/mem.h"
#include "ctl/table/edges.h"

#define LISTS 40

struct lists {
	struct resolved r;
	struct resolved_edges macs[LISTS];
	struct tables tables;
};

// Some lists have one stretch, one has as many as all lists may have together.
static void make(struct lists *l, uint64_t *seed, size_t most)
{
	*l = (struct lists){.r = {.macs = l->macs, .n_macs = LISTS}};
	for (size_t i = 0; i < LISTS; i++) {
		size_t n = 2 * (1 + (i == 7 ? most - 1 : unit_below(seed, i % 3 ? 5 : 300)));
		uint64_t *at = mem_zalloc(n, sizeof(*at)), next = unit_below(seed, 3);

		for (size_t e = 0; e < n; e++) {
			at[e] = next;
			next += 1 +
				(unit_below(seed, 2) ? 0 : (uint64_t)unit_below(seed, 1u << 31));
		}
		l->macs[i] = (struct resolved_edges){at, n};
	}
	edges_build(&l->r, &l->tables);
}

static void lists_free(struct lists *l)
{
	for (size_t i = 0; i < LISTS; i++)
		free((void *)l->macs[i].at);
	tables_free(&l->tables);
}

static void check_number(const struct lists *l, uint32_t list, uint64_t number, bool in)
{
	bool held =
		edges_hold(&l->tables, number, edges_first(&l->r, list), (uint32_t)l->macs[list].n);

	if (held != in)
		fail_msg("list %u, number %llu: %d", list, (unsigned long long)number, held);
}

static void check_list(const struct lists *l, uint32_t list)
{
	const struct resolved_edges *e = &l->macs[list];

	check_number(l, list, e->at[0] - (e->at[0] > 0), e->at[0] == 0);
	for (size_t i = 0; i < e->n; i++) {
		check_number(l, list, e->at[i], i % 2 == 0);
		if (i + 1 < e->n)
			check_number(l, list, e->at[i + 1] - 1, i % 2 == 0);
	}
	check_number(l, list, (1ull << 48) - 1, false);
	check_number(l, list, 1ull << 62, false);
}

static void test_lists(void **state)
{
	static const size_t sizes[] = {1, 100, 16384, 30000};
	uint64_t seed = 11;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct lists l;

		make(&l, &seed, sizes[i]);
		for (uint32_t list = 0; list < LISTS; list++)
			check_list(&l, list);
		lists_free(&l);
	}
}

static void test_none(void **state)
{
	struct resolved none = {0};
	struct tables t = {0};

	edges_build(&none, &t);
	assert_int_equal(t.n, 0);
	assert_true(t.constant[LIST_CONSTANT(L_EDGES)].set);
	assert_false(t.constant[LIST_CONSTANT(L_EDGES)].address);
	assert_true(t.constant[LIST_CONSTANT(L_EDGES_N)].set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
