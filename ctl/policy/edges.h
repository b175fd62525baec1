// SPDX-License-Identifier: GPL-2.0-only
// Sets of numbers as sorted edges: a number is in the set if an odd number of edges is not above
// it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/policy/ranges.h"

struct edges { // as VEC(uint64_t); an even number
	uint64_t *at;
	size_t n, cap;
};

struct stretch { // numbers that are in the set, or left out
	uint64_t first, last;
	bool out;
};

// The set of all stretches, in any order; a number of one that is left out is not in the set.
void edges_of(const struct stretch *at, size_t n, struct edges *ret);
// Is each number of `inner` in `outer`?
bool edges_cover(const uint64_t *outer, size_t n_outer, const uint64_t *inner, size_t n_inner);
// The same set as ranges, for numbers below 2^16.
void edges_ranges(const struct edges *e, struct ranges *ret);
void edges_free(struct edges *e);
