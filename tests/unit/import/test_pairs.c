// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import/pairs.c: random lists against one bit for each address and port.
#include "tests/unit/base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/vec.h"
#include "ctl/import/pairs.h"

#define ADDRESSES 6
#define PORTS     24 // the last ones are at the end of the range
#define FIRST     (65536 - PORTS)
#define ROUNDS    20000

struct grid {
	bool at[ADDRESSES][PORTS];
};

static uint16_t port_of(unsigned n)
{
	return n < PORTS / 2 ? (uint16_t)n : (uint16_t)(FIRST + n);
}

static struct pairs *random_pairs(struct arena *arena, struct grid *ret)
{
	size_t n = 1 + (size_t)(rand() % 9);
	struct addr_port *at = arena_zalloc(arena, n, sizeof(*at));

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < n; i++) {
		unsigned addr = (unsigned)rand() % ADDRESSES, first = (unsigned)rand() % PORTS;
		unsigned end = first < PORTS / 2 ? PORTS / 2 : PORTS;
		unsigned last = first + (unsigned)rand() % (end - first);

		at[i] = (struct addr_port){addr, port_of(first), port_of(last)};
		for (unsigned p = first; p <= last; p++)
			ret->at[addr][p] = true;
	}
	return pairs_make(arena, at, n, 4);
}

// Sorted, disjoint and not adjacent, and nothing but the grid.
static void check(const struct pairs *p, const struct grid *want)
{
	bool any = false;

	for (unsigned a = 0; a < ADDRESSES; a++)
		for (unsigned n = 0; n < PORTS; n++) {
			any |= want->at[a][n];
			assert_int_equal(p && pairs_have(p, a, port_of(n)), want->at[a][n]);
		}
	assert_int_equal(!!p, any);
	for (size_t i = 1; p && i < p->n; i++)
		assert_true(p->at[i - 1].addr < p->at[i].addr ||
			    (p->at[i - 1].addr == p->at[i].addr &&
			     p->at[i - 1].last + 1 < p->at[i].first));
}

static void test_meet(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		struct arena arena = {0};
		struct grid a, b;
		const struct pairs *x = random_pairs(&arena, &a), *y = random_pairs(&arena, &b);

		check(x, &a);
		for (unsigned i = 0; i < ADDRESSES; i++)
			for (unsigned n = 0; n < PORTS; n++)
				b.at[i][n] &= a.at[i][n];
		check(pairs_meet(&arena, x, y), &b);
		arena_free(&arena);
	}
}

// One or two intervals of 0..last.
static struct intervals random_intervals(struct arena *arena, unsigned last)
{
	struct interval *at = arena_zalloc(arena, 2, sizeof(*at));
	unsigned middle = (unsigned)rand() % (last + 1);

	at[0] = (struct interval){(unsigned)rand() % (middle + 1), middle};
	at[1] = (struct interval){middle + 2, last};
	return (struct intervals){.at = at, .n = middle + 2 <= last ? 2 : 1};
}

static bool is_in(const struct intervals *v, address_number n)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->at[i].first <= n && n <= v->at[i].last)
			return true;
	return false;
}

static void test_within(void **state)
{
	(void)state;
	srand(2);
	for (int round = 0; round < ROUNDS; round++) {
		struct arena arena = {0};
		struct grid grid;
		const struct pairs *x = random_pairs(&arena, &grid), *kept;
		struct intervals addresses = random_intervals(&arena, ADDRESSES - 1);
		struct intervals ports = random_intervals(&arena, rand() % 2 ? 65535 : 20);
		bool lost = false;

		for (unsigned i = 0; i < ADDRESSES; i++)
			for (unsigned n = 0; n < PORTS; n++) {
				bool in = is_in(&addresses, i) && is_in(&ports, port_of(n));

				lost |= grid.at[i][n] && !in;
				grid.at[i][n] &= in;
			}
		assert_true(pairs_within(&arena, x, &addresses, &ports, 1000, &kept));
		check(kept, &grid);
		assert_int_equal(kept == x, !lost);
		arena_free(&arena);
	}
}

// A range of ports is cut into many.
static void test_too_many(void **state)
{
	static struct interval every[] = {{0, 9}}, ports[] = {{1, 1}, {3, 3}, {5, 5}, {7, 65535}};
	struct intervals addresses = {.at = every, .n = 1}, cut = {.at = ports, .n = 4};
	struct addr_port at[] = {{4, 0, 65535}, {5, 0, 65535}, {99, 0, 65535}};
	const struct pairs *kept = NULL;
	struct arena arena = {0};
	struct pairs *p = pairs_make(&arena, at, 3, 4);

	(void)state;
	assert_true(pairs_within(&arena, p, &addresses, &cut, 8, &kept));
	assert_int_equal(kept->n, 8);
	kept = NULL;
	assert_false(pairs_within(&arena, p, &addresses, &cut, 7, &kept));
	assert_null(kept);
	arena_free(&arena);
}

static void test_equal(void **state)
{
	struct addr_port a[] = {{1, 5, 5}, {1, 6, 9}}, b[] = {{1, 5, 9}}, c[] = {{1, 5, 8}};
	struct arena arena = {0};
	const struct pairs *x = pairs_make(&arena, a, 2, 4);

	(void)state;
	assert_true(pairs_equal(x, pairs_make(&arena, b, 1, 4)));
	assert_false(pairs_equal(x, pairs_make(&arena, c, 1, 4)));
	assert_false(pairs_equal(x, pairs_make(&arena, b, 1, 6)));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meet),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
