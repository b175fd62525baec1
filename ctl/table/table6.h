// SPDX-License-Identifier: GPL-2.0-only
// The tables of the IPv6 addresses of one side (common/table6.h).
#pragma once

#include "ctl/table/regions.h"
#include "ctl/table/tables.h"

// Adds the tables of the regions of the IPv6 addresses, whose rows are below 2^31, and sets the
// constants T6_* and H6_* of the side. `seed`: of the hash of hosts. -ENOSPC when they would be
// larger than TABLES_BYTES_MAX.
int table6_build(struct tables *t, enum table_side side, const struct regions *r, uint64_t seed);
