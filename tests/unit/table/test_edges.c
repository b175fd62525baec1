// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of common/edges.h and ctl/table/edges.c: searches among the edges of several lists.
#include "tests/unit/base/unit.h"

#include <stdlib.h>

#include "common/edges.h"
#include "common/limits-policy.h"
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

struct pairs {
	struct resolved r;
	struct resolved_pair_set sets[2];
	struct resolved_pair *at; // pairs of both sets, with ascending IPv6 addresses
	struct pair6 *known;      // the same addresses
	size_t n;
	struct tables tables;
};

static struct addr address6(struct pair6 a)
{
	struct addr addr = {.family = 6};

	for (int i = 0; i < 8; i++) {
		addr.bytes[i] = (uint8_t)(a.hi >> (56 - 8 * i));
		addr.bytes[8 + i] = (uint8_t)(a.lo >> (56 - 8 * i));
	}
	return addr;
}

// A greater address: the next one, the last one with this first half, or one with a first half of
// at least that number.
static struct pair6 greater(struct pair6 a, uint64_t *seed, uint64_t least)
{
	unsigned kind = unit_below(seed, 3);

	if (kind == 0)
		return (struct pair6){a.hi < least ? least : a.hi + 1, unit_below(seed, 2)};
	if (kind == 1 && a.lo < UINT64_MAX)
		return (struct pair6){a.hi, UINT64_MAX};
	return (struct pair6){a.hi + (a.lo == UINT64_MAX), a.lo + 1};
}

static void make_pairs(struct pairs *p, uint64_t *seed, size_t n)
{
	struct pair6 next = {0, 5};
	size_t half = n / 2;

	*p = (struct pairs){.r = {.pairs = p->sets, .n_pairs = 2}, .n = n};
	p->at = mem_zalloc(n, sizeof(*p->at));
	p->known = mem_zalloc(n, sizeof(*p->known));
	for (size_t i = 0; i < n; i++) {
		uint16_t port = (uint16_t)unit_below(seed, UINT16_MAX - 8);

		p->known[i] = next;
		p->at[i] = (struct resolved_pair){address6(next), port,
						  (uint16_t)(port + unit_below(seed, 9))};
		next = greater(next, seed, (i + 1) * (UINT64_MAX / n));
	}
	p->sets[0] = (struct resolved_pair_set){.at = p->at, .n = half};
	p->sets[1] = (struct resolved_pair_set){.at = p->at + half, .n = n - half};
	edges_build(&p->r, &p->tables);
}

static void pairs_free(struct pairs *p)
{
	free(p->at);
	free(p->known);
	tables_free(&p->tables);
}

static void check_pair(const struct pairs *p, uint64_t number, uint32_t set, bool in)
{
	for (int negated = 0; negated < 2; negated++) {
		struct resolved_pairs of = {true, negated, set};
		uint32_t first, n;

		edges_pairs(&p->r, &of, &first, &n);
		if (edges_hold(&p->tables, number, first, n) != (in != negated))
			fail_msg("set %u, negated %d, number %#llx", set, negated,
				 (unsigned long long)number);
	}
}

static void check_unknown(const struct pairs *p, struct pair6 a)
{
	uint64_t number = pair_number6(&p->tables, a.hi, a.lo, 80);

	if (number != PAIR_NONE)
		fail_msg("%#llx %#llx is number %#llx", (unsigned long long)a.hi,
			 (unsigned long long)a.lo, (unsigned long long)number);
	check_pair(p, number, 0, false);
	check_pair(p, number, 1, false);
}

static bool is_known(const struct pairs *p, size_t i, struct pair6 a)
{
	return i < p->n && p->known[i].hi == a.hi && p->known[i].lo == a.lo;
}

static void check_address(const struct pairs *p, size_t i)
{
	struct pair6 a = p->known[i], after = {a.hi + (a.lo == UINT64_MAX), a.lo + 1};
	struct pair6 before = {a.hi - (a.lo == 0), a.lo - 1};
	uint32_t set = i >= p->sets[0].n, first = p->at[i].first, last = p->at[i].last;
	uint64_t number = pair_number6(&p->tables, a.hi, a.lo, 0);

	assert_int_equal(number, PAIR6 | (uint64_t)i << 16);
	assert_int_equal(pair_number6(&p->tables, a.hi, a.lo, UINT16_MAX), number + UINT16_MAX);
	check_pair(p, number + first, set, true);
	check_pair(p, number + last, set, true);
	check_pair(p, number + last, !set, false);
	check_pair(p, number + last + 1, set, false);
	check_pair(p, number + first - 1, set, false);
	if (!is_known(p, i + 1, after))
		check_unknown(p, after);
	if (!is_known(p, i - 1, before))
		check_unknown(p, before);
}

static void test_pairs6(void **state)
{
	static const size_t sizes[] = {2, 3, 64, 1000, POLICY_PAIRS};
	uint64_t seed = 12;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct pairs p;

		make_pairs(&p, &seed, sizes[i]);
		for (size_t at = 0; at < p.n; at++)
			check_address(&p, at);
		check_unknown(&p, (struct pair6){0, 0});
		check_unknown(&p, (struct pair6){UINT64_MAX, UINT64_MAX});
		pairs_free(&p);
	}
}

// An address of two sets has one number; one of IPv4 has its own, and needs no address of IPv6.
static void test_pairs_shared(void **state)
{
	struct addr a4 = {4, {192, 0, 2, 1}}, a6 = address6((struct pair6){1, 2});
	struct resolved_pair both[] = {{a4, 80, 80}, {a6, 443, 450}}, other[] = {{a6, 22, 22}};
	struct pairs p = {.sets = {{.at = both, .n = 2}, {.at = other, .n = 1}}};
	uint64_t number4 = pair_number4(0xc0000201, 80);

	p.r = (struct resolved){.pairs = p.sets, .n_pairs = 2};
	edges_build(&p.r, &p.tables);
	assert_int_equal(pair_number6(&p.tables, 1, 2, 22), PAIR6 | 22);
	check_pair(&p, number4, 0, true);
	check_pair(&p, number4 + 1, 0, false);
	check_pair(&p, PAIR6 | 450, 0, true);
	check_pair(&p, PAIR6 | 22, 0, false);
	check_pair(&p, PAIR6 | 22, 1, true);
	tables_free(&p.tables);

	p = (struct pairs){.sets = {{.at = both, .n = 1}}};
	p.r = (struct resolved){.pairs = p.sets, .n_pairs = 1};
	edges_build(&p.r, &p.tables);
	check_pair(&p, number4, 0, true);
	check_pair(&p, pair_number6(&p.tables, 0, 0, 80), 0, false);
	check_pair(&p, pair_number6(&p.tables, 1, 2, 443), 0, false);
	tables_free(&p.tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_pairs6),
		cmocka_unit_test(test_pairs_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
