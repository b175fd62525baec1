// SPDX-License-Identifier: GPL-2.0-only
// Lists of an address and a port, as the elements of `ip daddr . tcp dport @web`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/policy/arena.h"
#include "ctl/policy/intervals.h"

struct addr_port {
	address_number addr;
	uint16_t first, last; // ports
};

// Facts about pairs that are found when they are used.
struct pairs_use {
	struct intervals addresses, ports; // in the pairs; `at` NULL: not known yet
	bool counted;                      // among the pairs of the policy
};

struct pairs {
	const struct addr_port
		*at;     // sorted by address and port; ports of an address are not adjacent
	size_t n;        // at least one
	uint8_t family;  // 4 or 6
	const char *set; // the name of a set with exactly these pairs; NULL: none
	struct pairs_use *use;
};

// Sorts and merges n pairs in place.
struct pairs *pairs_make(struct arena *arena, struct addr_port *at, size_t n, uint8_t family);
// Those in both. NULL: none.
const struct pairs *pairs_meet(struct arena *arena, const struct pairs *a, const struct pairs *b);
// Those with addresses and ports in these lists, which are sorted and disjoint: *ret is p itself if
// all are, and NULL without any. False: there would be more than `max`.
bool pairs_within(struct arena *arena, const struct pairs *p, const struct intervals *addresses,
		  const struct intervals *ports, size_t max, const struct pairs **ret);
bool pairs_have(const struct pairs *p, address_number addr, address_number port);
bool pairs_equal(const struct pairs *a, const struct pairs *b);
