// SPDX-License-Identifier: GPL-2.0-only
// Conditions on an address and a port of the same end: `ip daddr . tcp dport @web`.
#pragma once

#include "ctl/import/matches.h"

struct pair_key {
	int side, port;          // 0: the source, 1: the destination; which part has the port
	uint8_t families, proto; // families: of the address; proto 0: any
};

// Elements with a prefix or a range of addresses, and unknown ones.
struct pair_elements {
	const struct json *const *others;
	size_t n_others;
};

// Adds one alternative with the pairs of a list or set. False, without an alternative: it has fewer
// than two pairs or too many, or they are not certain.
bool condition_pairs(const struct condition_place *place, const struct pair_key *key,
		     const struct json *list, struct pair_elements *ret, struct matches *matches);
