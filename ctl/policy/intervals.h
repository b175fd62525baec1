// SPDX-License-Identifier: GPL-2.0-only
// Address sets as sorted disjoint intervals, for questions about whole sets.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/policy/resolved.h"

typedef unsigned __int128 address_number; // for IPv4: 0 .. 2^32 - 1

struct interval {
	address_number first, last;
};

struct intervals { // as VEC(struct interval)
	struct interval *at;
	size_t n, cap;
};

// The addresses of one family, 4 or 6, that the set contains.
void intervals_of(const struct resolved_addresses *s, uint8_t family, struct intervals *ret);
bool intervals_any(const struct resolved_addresses *s); // does it contain an address at all?
// Are all addresses of `inner` in `outer` too? Both are sorted and disjoint.
bool intervals_cover(const struct interval *outer, size_t n_outer, const struct interval *inner,
		     size_t n_inner);
// Do two lists have an address in common? Both are sorted and disjoint.
bool intervals_meet(const struct interval *a, size_t n_a, const struct interval *b, size_t n_b);
struct addr interval_addr(address_number n, uint8_t family);
void intervals_free(struct intervals *v);
