// SPDX-License-Identifier: GPL-2.0-only
// Writes the edges of all lists of MAC addresses and pairs into one table (common/edges.h).
#pragma once

#include "ctl/policy/resolved.h"
#include "ctl/table/tables.h"

// The place of the first edge of a list.
uint32_t edges_first(const struct resolved *r, uint32_t list);
// The edges of a set of pairs, or of all that are no pair of the set.
void edges_pairs(const struct resolved *r, const struct resolved_pairs *p, uint32_t *ret_first,
		 uint32_t *ret_n);
void edges_build(const struct resolved *r, struct tables *t);
