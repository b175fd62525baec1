// SPDX-License-Identifier: GPL-2.0-only
// One list after the other.
#include "ctl/table/edges.h"

#include <string.h>

#include "common/edges.h"
#include "common/limits-policy.h"

_Static_assert(2 * POLICY_MACS <= EDGES_MAX, "a search finds each edge");

uint32_t edges_first(const struct resolved *r, uint32_t list)
{
	size_t first = 0;

	for (uint32_t i = 0; i < list; i++)
		first += r->macs[i].n;
	return (uint32_t)first;
}

void edges_build(const struct resolved *r, struct tables *t)
{
	size_t n = edges_first(r, (uint32_t)r->n_macs), offset, at = 0;

	if (!n) { // no program reads them
		tables_number(t, LIST_CONSTANT(L_EDGES), 0);
		tables_number(t, LIST_CONSTANT(L_EDGES_N), 0);
		return;
	}
	offset = tables_add(t, n * sizeof(uint64_t));
	for (size_t i = 0; i < r->n_macs; i++) {
		memcpy(t->at + offset + at, r->macs[i].at, r->macs[i].n * sizeof(uint64_t));
		at += r->macs[i].n * sizeof(uint64_t);
	}
	tables_address(t, LIST_CONSTANT(L_EDGES), offset);
	tables_number(t, LIST_CONSTANT(L_EDGES_N), n);
}
