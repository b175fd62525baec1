// SPDX-License-Identifier: GPL-2.0-only
// Host lines: full-length addresses found with one memory access (struct policy_line4 in common/policy.h).
#pragma once

#include <stdbool.h>

#include "ctl/table/regions.h"
#include "ctl/table/arrays.h"

// Up to so many neighbouring addresses with the same row are taken for hosts; more are a prefix.
#define LINES_RUN 4
// So many IPv4 hosts among prefixes do without lines: the trie is walked anyway, and their nodes stay in the
// cache. In IPv6 a host lies up to 19 nodes deep.
#define LINES_FEW4 64

// The number of addresses of region i when they are hosts, else 0.
static inline unsigned lines_hosts(const struct regions *r, size_t i, int family)
{
	address_key n = (region_end(r, i) - region_first(&r->at[i])) >> key_host_shift(family);

	return n <= LINES_RUN ? (unsigned)n : 0;
}

// The hosts among the regions of a family.
size_t lines_count(const struct regions *r, int family);

// Are lines worth the look-up for so many hosts?
bool lines_pay(const struct regions *r, int family, size_t hosts);

// Adds lines for `hosts` hosts of the regions and gives the regions without those that found a place:
// a full line or a row of more than 16 bits leaves a host there. *ret_rest is undefined where a placed
// host was. *ret_first and *ret_lines are the lines' place in t->lines.
void lines_build(const struct regions *r, int family, size_t hosts, uint64_t seed,
		 struct table_arrays *t, struct regions *ret_rest, uint32_t *ret_first,
		 uint32_t *ret_lines);
