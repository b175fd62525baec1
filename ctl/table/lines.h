// SPDX-License-Identifier: GPL-2.0-only
// Host lines: full-length addresses found with one memory access (common/table4.h,
// common/table6.h).
#pragma once

#include "ctl/table/regions.h"

// Up to this many neighbouring addresses with the same row count as hosts; more are a prefix.
#define LINES_RUN 4

// The number of addresses of region i when they are hosts, else 0.
static inline unsigned lines_hosts(const struct regions *r, size_t i, int family)
{
	address_key n = (region_end(r, i) - region_first(&r->at[i])) >> key_host_shift(family);

	return n <= LINES_RUN ? (unsigned)n : 0;
}
