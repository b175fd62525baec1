/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of large numbers, such as MAC addresses, as sorted edges: a number is in the set if an odd
 * number of edges is not above it.
 *
 * The edges of all sets are in one table. See common/tables.h for TABLE_NUMBER and TABLE_AT. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "common/bounds.h"
#include "common/tables.h"

#define EDGES_STEPS 17
#define EDGES_MAX   ((1u << EDGES_STEPS) - 1) /* of all sets together */

/* Is the number, below 2^63, in the set of the edges first … first + n - 1? */
TABLE_INLINE bool edges_hold(const struct tables *v, __u64 number, __u32 first, __u32 n)
{
	__u64 below = 0; /* edges that are not above it */

	(void)v;
#pragma GCC unroll 17
	for (int bit = EDGES_STEPS - 1; bit >= 0; bit--) {
		__u64 to = below + (1ull << bit);
		__u64 at = BOUND_BELOW((__u64)first + to - 1,
				       TABLE_NUMBER(v, LIST_CONSTANT(L_EDGES_N)));
		__u64 edge = ((const __u64 *)TABLE_AT(v, LIST_CONSTANT(L_EDGES)))[at];

		below += ((is_less(n, to) | is_less(number, edge)) ^ 1) << bit;
	}
	return below & 1;
}
