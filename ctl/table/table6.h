// SPDX-License-Identifier: GPL-2.0-only
// The tables of the IPv6 addresses of one side (common/table6.h).
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

// Adds the tables of the regions of the IPv6 addresses, whose rows are below 2^31, and sets the
// constants T6_* and H6_* of the side. `seed`: of the hash of hosts. -ENOSPC when they would be
// larger than TABLES_BYTES_MAX.
int table6_build(struct tables *t, enum table_side side, const struct regions *r, uint64_t seed);
