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

/* The number of a pair, which is looked up among the edges of a set of pairs. */
#define PAIR6      (1ull << 48)
#define PAIR_NONE  (1ull << 61) /* no pair has this IPv6 address */
#define PAIR_END   (1ull << 62)
#define PAIR_STEPS 16 /* for at most so many bits of IPv6 addresses */

struct pair6 {
	__u64 hi, lo;
};

TABLE_INLINE __u64 pair_number4(__u32 addr, __u32 port)
{
	return (__u64)addr << 16 | port;
}

TABLE_INLINE const struct pair6 *pair6_at(const struct tables *v, __u64 index)
{
	(void)v;
	index = BOUND_BELOW(index, TABLE_NUMBER(v, LIST_CONSTANT(L_PAIRS6_N)));
	return &((const struct pair6 *)TABLE_AT(v, LIST_CONSTANT(L_PAIRS6)))[index];
}

/* An IPv6 address counts by its place among all that pairs have. */
TABLE_INLINE __u64 pair_number6(const struct tables *v, __u64 hi, __u64 lo, __u32 port)
{
	__u64 n = TABLE_NUMBER(v, LIST_CONSTANT(L_PAIRS6_N)), upto = 0, found;
	const struct pair6 *at;

	(void)v;
#pragma GCC unroll 16
	for (int bit = PAIR_STEPS - 1; bit >= 0; bit--) {
		__u64 to = upto + (1ull << bit);
		__u64 above;

		at = pair6_at(v, to - 1);
		above = is_below(hi, at->hi) | (is_zero64(hi ^ at->hi) & is_below(lo, at->lo));
		upto += ((is_less(n, to) | above) ^ 1) << bit;
	}
	at = pair6_at(v, upto - 1);
	found = is_zero64(hi ^ at->hi) & is_zero64(lo ^ at->lo);
	return found * (PAIR6 | (upto - 1) << 16 | port) + (found ^ 1) * PAIR_NONE;
}
