// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/policy/edges.c: sets of random stretches beside a bit for each number.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/policy/edges.h"

#define NUMBERS 70
#define PARTS   9
#define ROUNDS  20000

struct made {
	bool in[NUMBERS];
	struct edges edges;
};

static void make(uint64_t *seed, struct made *ret)
{
	struct stretch parts[PARTS];
	size_t n = unit_below(seed, PARTS + 1);
	bool out[NUMBERS] = {0};

	*ret = (struct made){0};
	for (size_t i = 0; i < n; i++) {
		uint64_t first = unit_below(seed, NUMBERS);
		uint64_t last = first + unit_below(seed, (uint32_t)(NUMBERS - first));

		parts[i] = (struct stretch){first, last, unit_below(seed, 3) == 0};
		for (uint64_t at = first; at <= last; at++)
			(parts[i].out ? out : ret->in)[at] = true;
	}
	for (size_t at = 0; at < NUMBERS; at++)
		ret->in[at] = ret->in[at] && !out[at];
	edges_of(parts, n, &ret->edges);
}

static void check_edges(const struct made *m)
{
	size_t below = 0;

	assert_int_equal(m->edges.n % 2, 0);
	for (size_t i = 1; i < m->edges.n; i++)
		assert_true(m->edges.at[i - 1] < m->edges.at[i]);
	for (size_t at = 0; at < NUMBERS; at++) {
		while (below < m->edges.n && m->edges.at[below] <= at)
			below++;
		assert_int_equal(below % 2, m->in[at]);
	}
}

static void check_ranges(const struct made *m)
{
	CLEANUP(ranges_free) struct ranges ranges = {0};

	edges_ranges(&m->edges, &ranges);
	for (uint16_t at = 0; at < NUMBERS; at++)
		assert_int_equal(ranges_has(ranges.at, ranges.n, at), m->in[at]);
	for (size_t i = 1; i < ranges.n; i++)
		assert_true(ranges.at[i].first > ranges.at[i - 1].last + 1);
}

static bool is_within(const struct made *inner, const struct made *outer)
{
	for (size_t at = 0; at < NUMBERS; at++)
		if (inner->in[at] && !outer->in[at])
			return false;
	return true;
}

static void test_random(void **state)
{
	uint64_t seed = 0xed6e5;
	unsigned covered = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct made a, b;
		bool cover;

		make(&seed, &a);
		make(&seed, &b);
		check_edges(&a);
		check_ranges(&a);
		cover = edges_cover(a.edges.at, a.edges.n, b.edges.at, b.edges.n);
		assert_int_equal(cover, is_within(&b, &a));
		covered += cover && b.edges.n;
		edges_free(&a.edges);
		edges_free(&b.edges);
	}
	assert_true(covered > ROUNDS / 50);
}

static void test_last_number(void **state)
{
	const struct stretch all = {0, UINT16_MAX, false};
	CLEANUP(edges_free) struct edges edges = {0};
	CLEANUP(ranges_free) struct ranges ranges = {0};

	edges_of(&all, 1, &edges);
	edges_ranges(&edges, &ranges);
	assert_int_equal(ranges.n, 1);
	assert_int_equal(ranges.at[0].first, 0);
	assert_int_equal(ranges.at[0].last, UINT16_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_last_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
