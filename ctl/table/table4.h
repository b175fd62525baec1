// SPDX-License-Identifier: GPL-2.0-only
// IPv4 addresses and their rows in the form for the datapath (common/table4.h).
#pragma once

#include "ctl/table/regions.h"
#include "ctl/table/tables.h"

// Adds the table of a side and the buckets of its hosts, of the kinds that fit the regions, and
// sets the constants of these kinds. The same regions and seed give the same tables. Rows are 1 …
// 2^31 -
// 1. 0, or -ENOSPC when the tables would have more than TABLES_BYTES_MAX bytes.
int table4_build(struct tables *t, enum table_side side, const struct regions *r, uint64_t seed);
