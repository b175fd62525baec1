// SPDX-License-Identifier: GPL-2.0-only
// The arithmetic of sorted ranges.
#include "ctl/policy/ranges.h"

#include <stdlib.h>

#include "ctl/base/mem.h"

void ranges_add(struct ranges *r, uint32_t first, uint32_t last)
{
	vec_push(r, ((struct range16){.first = (uint16_t)first, .last = (uint16_t)last}));
}

void ranges_intersect(struct ranges *r, const struct ranges *other)
{
	struct ranges both = {0};

	for (size_t i = 0, j = 0; i < r->n && j < other->n;) {
		struct range16 a = r->at[i], b = other->at[j];
		uint16_t first = a.first > b.first ? a.first : b.first;
		uint16_t last = a.last < b.last ? a.last : b.last;

		if (first <= last)
			ranges_add(&both, first, last);
		if (a.last < b.last)
			i++;
		else
			j++;
	}
	ranges_free(r);
	*r = both;
}

bool ranges_has(const struct range16 *at, size_t n, uint16_t value)
{
	const struct range16 one = {value, value};

	return ranges_meet(at, n, &one, 1);
}

bool ranges_cover(const struct range16 *outer, size_t n_outer, const struct range16 *inner,
		  size_t n_inner)
{
	for (size_t i = 0, j = 0; i < n_inner; i++) {
		while (j < n_outer && outer[j].last < inner[i].first)
			j++;
		if (j == n_outer || outer[j].first > inner[i].first ||
		    outer[j].last < inner[i].last)
			return false;
	}
	return true;
}

bool ranges_meet(const struct range16 *a, size_t n_a, const struct range16 *b, size_t n_b)
{
	for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
		if (a[i].last < b[j].first)
			i++;
		else if (b[j].last < a[i].first)
			j++;
		else
			return true;
	}
	return false;
}

void ranges_free(struct ranges *r)
{
	vec_free(r);
}
