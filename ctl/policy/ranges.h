// SPDX-License-Identifier: GPL-2.0-only
// Sets of small numbers (ports, protocols, VLANs, …) as sorted ranges.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/policy/resolved.h"

struct ranges { // as VEC(struct range16)
	struct range16 *at;
	size_t n, cap;
};

void ranges_add(struct ranges *r, uint32_t first, uint32_t last);
// The ranges of these are sorted, disjoint and not adjacent.
void ranges_intersect(struct ranges *r, const struct ranges *other);
bool ranges_has(const struct range16 *at, size_t n, uint16_t value);
// Does each value of `inner` lie in `outer`?
bool ranges_cover(const struct range16 *outer, size_t n_outer, const struct range16 *inner,
		  size_t n_inner);
bool ranges_meet(const struct range16 *a, size_t n_a, const struct range16 *b, size_t n_b);
void ranges_free(struct ranges *r);
