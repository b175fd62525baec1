// SPDX-License-Identifier: GPL-2.0-only
// One list after the other.
#include "ctl/table/edges.h"

#include <stdlib.h>
#include <string.h>

#include "common/edges.h"
#include "common/limits-policy.h"
#include "ctl/base/vec.h"

_Static_assert(2 * POLICY_MACS <= EDGES_MAX, "a search finds each edge");
_Static_assert(2 * POLICY_PAIRS + 2 <= EDGES_MAX, "a search finds each edge");
_Static_assert(POLICY_PAIRS < 1 << PAIR_STEPS, "a search finds each address");

uint32_t edges_first(const struct resolved *r, uint32_t list)
{
	size_t first = 0;

	for (uint32_t i = 0; i < list; i++)
		first += r->macs[i].n;
	return (uint32_t)first;
}

// A set of pairs has two lists: its edges, and those of the rest.
static size_t edges_of_set(const struct resolved_pair_set *set)
{
	return 2 * set->n + 2 * set->n + 2;
}

static size_t set_first(const struct resolved *r, size_t number)
{
	size_t first = edges_first(r, (uint32_t)r->n_macs);

	for (size_t i = 0; i < number; i++)
		first += edges_of_set(&r->pairs[i]);
	return first;
}

void edges_pairs(const struct resolved *r, const struct resolved_pairs *p, uint32_t *ret_first,
		 uint32_t *ret_n)
{
	size_t n = 2 * r->pairs[p->index].n;

	*ret_first = (uint32_t)(set_first(r, p->index) + (p->negated ? n : 0));
	*ret_n = (uint32_t)(n + (p->negated ? 2 : 0));
}

static uint64_t half(const uint8_t *bytes)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | bytes[i];
	return n;
}

static int compare_pair6(const void *a, const void *b)
{
	const struct pair6 *x = a, *y = b;

	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

// The IPv6 addresses of all sets, each once.
static void build_addresses6(const struct resolved *r, struct tables *t)
{
	VEC(struct pair6) all = {0};
	size_t n = 0, offset;

	for (size_t s = 0; s < r->n_pairs; s++)
		for (size_t i = 0; i < r->pairs[s].n; i++) {
			const struct addr *a = &r->pairs[s].at[i].addr;

			if (a->family == 6)
				vec_push(&all,
					 ((struct pair6){half(a->bytes), half(a->bytes + 8)}));
		}
	if (all.n)
		qsort(all.at, all.n, sizeof(*all.at), compare_pair6);
	for (size_t i = 0; i < all.n; i++)
		if (!n || compare_pair6(&all.at[n - 1], &all.at[i]))
			all.at[n++] = all.at[i];
	if (!n) // one that no pair has an edge for
		vec_push(&all, ((struct pair6){0}));
	n = n ? n : 1;
	offset = tables_add(t, n * sizeof(*all.at));
	memcpy(t->at + offset, all.at, n * sizeof(*all.at));
	tables_address(t, LIST_CONSTANT(L_PAIRS6), offset);
	tables_number(t, LIST_CONSTANT(L_PAIRS6_N), n);
	vec_free(&all);
}

static uint64_t number_of(const struct tables *t, const struct addr *a)
{
	if (a->family == 4)
		return pair_number4((uint32_t)(half(a->bytes) >> 32), 0);
	return pair_number6(t, half(a->bytes), half(a->bytes + 8), 0);
}

static void put_set(const struct resolved_pair_set *set, struct tables *t, size_t offset)
{
	size_t n = 2 * set->n;
	uint64_t *at = (uint64_t *)(void *)(t->at + offset);

	for (size_t i = 0; i < set->n; i++) {
		uint64_t number = number_of(t, &set->at[i].addr);

		at[2 * i] = number + set->at[i].first;
		at[2 * i + 1] = number + set->at[i].last + 1;
	}
	at[n] = 0;
	memcpy(&at[n + 1], at, n * sizeof(*at));
	at[2 * n + 1] = PAIR_END;
}

static void no_edges(struct tables *t)
{
	for (int name = 0; name < TABLE_LIST_CONSTANTS; name++)
		tables_number(t, LIST_CONSTANT(name), 0);
}

void edges_build(const struct resolved *r, struct tables *t)
{
	size_t n = set_first(r, r->n_pairs), offset, at;

	no_edges(t); // a program without such conditions does not read them
	if (!n)
		return;
	if (r->n_pairs)
		build_addresses6(r, t);
	at = offset = tables_add(t, n * sizeof(uint64_t));
	for (size_t i = 0; i < r->n_macs; i++) {
		memcpy(t->at + at, r->macs[i].at, r->macs[i].n * sizeof(uint64_t));
		at += r->macs[i].n * sizeof(uint64_t);
	}
	for (size_t i = 0; i < r->n_pairs; i++) {
		put_set(&r->pairs[i], t, at);
		at += edges_of_set(&r->pairs[i]) * sizeof(uint64_t);
	}
	tables_address(t, LIST_CONSTANT(L_EDGES), offset);
	tables_number(t, LIST_CONSTANT(L_EDGES_N), n);
}
