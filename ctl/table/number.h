// SPDX-License-Identifier: GPL-2.0-only
// The final numbers of the rows, low for hosts, whose lines have 16 bits for a number.
#pragma once

#include "ctl/table/regions.h"
#include "ctl/table/rows.h"

struct number_regions {
	struct regions *regions;
	int family;
	bool lines; // its hosts go into lines
};

// With more than 65536 rows, gives the rows of hosts the lowest numbers, the rows of most hosts
// first, in `rows`, fields[0 … n_fields - 1] (all are row numbers) and all regions.
void number_rows(struct rows *rows, __u32 *fields, size_t n_fields, struct number_regions *list,
		 size_t n_list);

// Up to this many neighbouring addresses with the same row count as hosts; more are a prefix.
#define LINES_RUN 4

// The number of addresses of region i when they are hosts, else 0.
static inline unsigned lines_hosts(const struct regions *r, size_t i, int family)
{
	address_key n = (region_end(r, i) - region_first(&r->at[i])) >> key_host_shift(family);

	return n <= LINES_RUN ? (unsigned)n : 0;
}
