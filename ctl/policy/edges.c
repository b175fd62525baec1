// SPDX-License-Identifier: GPL-2.0-only
// Walks over the borders of all stretches in order.
#include "ctl/policy/edges.h"

#include <stdlib.h>

#include "ctl/base/mem.h"

struct border { // where stretches begin (1) or end (-1)
	uint64_t at;
	int in, out;
};

static int compare(const void *a, const void *b)
{
	const struct border *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static struct border border_of(const struct stretch *s, uint64_t at, int step)
{
	return (struct border){.at = at, .in = s->out ? 0 : step, .out = s->out ? step : 0};
}

void edges_of(const struct stretch *at, size_t n, struct edges *ret)
{
	CLEANUP_FREE struct border *borders = mem_zalloc(2 * n, sizeof(*borders));
	int in = 0, out = 0;

	for (size_t i = 0; i < n; i++) {
		borders[2 * i] = border_of(&at[i], at[i].first, 1);
		borders[2 * i + 1] = border_of(&at[i], at[i].last + 1, -1);
	}
	if (n)
		qsort(borders, 2 * n, sizeof(*borders), compare);
	for (size_t i = 0; i < 2 * n; i++) {
		in += borders[i].in;
		out += borders[i].out;
		if (i + 1 < 2 * n && borders[i + 1].at == borders[i].at)
			continue;
		if ((in && !out) != (ret->n % 2))
			vec_push(ret, borders[i].at);
	}
}

bool edges_cover(const uint64_t *outer, size_t n_outer, const uint64_t *inner, size_t n_inner)
{
	for (size_t i = 0, j = 0; i < n_inner; i += 2) {
		while (j < n_outer && outer[j + 1] <= inner[i])
			j += 2;
		if (j == n_outer || outer[j] > inner[i] || outer[j + 1] < inner[i + 1])
			return false;
	}
	return true;
}

void edges_ranges(const struct edges *e, struct ranges *ret)
{
	for (size_t i = 0; i < e->n; i += 2)
		ranges_add(ret, (uint32_t)e->at[i], (uint32_t)(e->at[i + 1] - 1));
}

void edges_free(struct edges *e)
{
	vec_free(e);
}
