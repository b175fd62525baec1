// SPDX-License-Identifier: GPL-2.0-only
// Sorted lists: two meet in one pass.
#include "ctl/import/pairs.h"

#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"

static int compare(const void *a, const void *b)
{
	const struct addr_port *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (int)x->first - (int)y->first;
}

struct pairs *pairs_make(struct arena *arena, struct addr_port *at, size_t n, uint8_t family)
{
	struct pairs *ret = arena_zalloc(arena, 1, sizeof(*ret));
	struct pairs_use *use = arena_zalloc(arena, 1, sizeof(*use));
	size_t kept = 0;

	qsort(at, n, sizeof(*at), compare);
	for (size_t i = 1; i < n; i++) {
		struct addr_port *last = &at[kept];

		if (at[i].addr != last->addr || at[i].first > last->last + 1)
			at[++kept] = at[i];
		else if (at[i].last > last->last)
			last->last = at[i].last;
	}
	*ret = (struct pairs){.at = at, .n = kept + 1, .family = family, .use = use};
	return ret;
}

const struct pairs *pairs_meet(struct arena *arena, const struct pairs *a, const struct pairs *b)
{
	struct addr_port *at = arena_zalloc(arena, a->n + b->n, sizeof(*at));
	size_t n = 0;

	for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
		const struct addr_port *x = &a->at[i], *y = &b->at[j];

		if (x->addr == y->addr && x->first <= y->last && y->first <= x->last)
			at[n++] = (struct addr_port){x->addr,
						     x->first > y->first ? x->first : y->first,
						     x->last < y->last ? x->last : y->last};
		if (x->addr < y->addr || (x->addr == y->addr && x->last < y->last))
			i++;
		else
			j++;
	}
	return n ? pairs_make(arena, at, n, a->family) : NULL;
}

// The first interval that does not end before the number.
static size_t find(const struct intervals *list, address_number number)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->at[middle].last < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has(const struct intervals *list, address_number number)
{
	size_t i = find(list, number);

	return i < list->n && list->at[i].first <= number;
}

struct pair_list {
	VEC(struct addr_port) of;
};

static void pair_list_free(struct pair_list *l)
{
	vec_free(&l->of);
}

// The parts of a pair whose ports are in the list.
static void add_parts(const struct addr_port *pair, const struct intervals *ports, size_t max,
		      struct pair_list *ret)
{
	for (size_t i = find(ports, pair->first); i < ports->n && ret->of.n < max; i++) {
		const struct interval *v = &ports->at[i];
		uint16_t first = v->first > pair->first ? (uint16_t)v->first : pair->first;
		uint16_t last = v->last < pair->last ? (uint16_t)v->last : pair->last;

		if (v->first > pair->last)
			return;
		vec_push(&ret->of, ((struct addr_port){pair->addr, first, last}));
	}
}

bool pairs_within(struct arena *arena, const struct pairs *p, const struct intervals *addresses,
		  const struct intervals *ports, size_t max, const struct pairs **ret)
{
	CLEANUP(pair_list_free) struct pair_list kept = {0};
	struct pairs *made;

	for (size_t i = 0; i < p->n && kept.of.n <= max; i++)
		if (has(addresses, p->at[i].addr))
			add_parts(&p->at[i], ports, max + 1, &kept);
	if (kept.of.n > max)
		return false;
	*ret = NULL;
	if (!kept.of.n)
		return true;
	made = pairs_make(arena, arena_copy(arena, kept.of.at, kept.of.n, sizeof(*kept.of.at)),
			  kept.of.n, p->family);
	*ret = pairs_equal(made, p) ? p : made;
	return true;
}

bool pairs_have(const struct pairs *p, address_number addr, address_number port)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct addr_port *pair = &p->at[middle];

		if (pair->addr < addr || (pair->addr == addr && pair->last < port))
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->n && p->at[low].addr == addr && p->at[low].first <= port;
}

bool pairs_equal(const struct pairs *a, const struct pairs *b)
{
	if (a->family != b->family || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->at[i].addr != b->at[i].addr || a->at[i].first != b->at[i].first ||
		    a->at[i].last != b->at[i].last)
			return false;
	return true;
}
