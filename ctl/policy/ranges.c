// SPDX-License-Identifier: GPL-2.0-only
// The arithmetic of sorted ranges.
#include "ctl/policy/ranges.h"

#include <stdlib.h>

#include "ctl/base/mem.h"

void ranges_add(struct ranges *r, uint32_t first, uint32_t last)
{
	vec_push(r, ((struct range16){.first = (uint16_t)first, .last = (uint16_t)last}));
}

static int compare(const void *a, const void *b)
{
	const struct range16 *x = a, *y = b;

	return x->first != y->first ? (int)x->first - y->first : (int)x->last - y->last;
}

void ranges_sort(struct ranges *r)
{
	size_t n = 0;

	if (r->n)
		qsort(r->at, r->n, sizeof(*r->at), compare);
	for (size_t i = 0; i < r->n; i++) {
		if (n && r->at[i].first <= (uint32_t)r->at[n - 1].last + 1) {
			if (r->at[i].last > r->at[n - 1].last)
				r->at[n - 1].last = r->at[i].last;
			continue;
		}
		r->at[n++] = r->at[i];
	}
	r->n = n;
}

void ranges_complement(struct ranges *r, uint16_t first, uint16_t last)
{
	struct ranges left = {0};
	uint32_t next = first;

	for (size_t i = 0; i < r->n; i++) {
		if (r->at[i].first > next)
			ranges_add(&left, next, (uint32_t)r->at[i].first - 1);
		next = (uint32_t)r->at[i].last + 1;
	}
	if (next <= last)
		ranges_add(&left, next, last);
	ranges_free(r);
	*r = left;
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

void ranges_subtract(struct ranges *r, const struct ranges *other)
{
	struct ranges rest = {0};

	for (size_t i = 0; i < other->n; i++)
		vec_push(&rest, other->at[i]);
	ranges_complement(&rest, 0, UINT16_MAX);
	ranges_intersect(r, &rest);
	ranges_free(&rest);
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
