// SPDX-License-Identifier: GPL-2.0-only
// Prefixes and ranges of IPv6 as nodes and cells (common/table6.h).
#pragma once

#include "common/table6.h"
#include "ctl/table/regions.h"
#include "ctl/table/tables.h"

// As TABLE6_WIDE has them.
struct table6_nodes {
	VEC(struct table6_wide_node) nodes;
	VEC(uint32_t) cells;
};

// At most room_bytes in memory, else -ENOSPC.
int table6_nodes_build(const struct regions *r, size_t room_bytes, struct table6_nodes *ret);
void table6_nodes_free(struct table6_nodes *n);

// Do they fit in TABLE6_NODES?
bool table6_nodes_are_narrow(const struct table6_nodes *n);

// Adds them to the tables as TABLE6_NODES or TABLE6_WIDE; -ENOSPC when there is no room.
int table6_nodes_add(const struct table6_nodes *n, struct tables *t, enum table_side side,
		     enum table6_kind kind);
