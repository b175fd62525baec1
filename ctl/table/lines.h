// SPDX-License-Identifier: GPL-2.0-only
// Host lines: full-length addresses found with one memory access (common/table4.h, common/table6.h).
#pragma once

#include <stdbool.h>

#include "ctl/table/regions.h"

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
