/* SPDX-License-Identifier: GPL-2.0-only */
/* IPv6 addresses in the tables of a policy: hosts in lines, prefixes and ranges in nodes.
 * ctl/table/table6.h writes them, table6_row() reads them. Addresses are two words in host order,
 * the high one first. */
#pragma once

#include <linux/types.h>

#include "common/bounds.h"
#include "common/tables.h"

enum table6_kind {
	TABLE6_ONE,   /* T6_NONE is the row of all addresses */
	TABLE6_NODES, /* at most 255 rows and 2^15 nodes: u16 cells, struct table6_node */
	TABLE6_WIDE,  /* u32 cells, struct table6_wide_node */
};

/* A cell is a row with the leaf bit, or the number of a node. The first 65536 cells are picked by
 * the first 16 bits of the address, the others by nodes.
 *
 * A node compares a key, at first the high word of the address, with the 2^shift keys from `low`
 * on.
 * Inside: the row `in`. Where that is 0: cells[next + ((key - low) >> down)].
 * Outside: the row `out`. Where that is 0: the node `next`. */
#define TABLE6_DIRECT    65536
#define TABLE6_LEAF      (1u << 15)
#define TABLE6_WIDE_LEAF (1u << 31)

struct table6_node {
	__u64 low;
	__u32 next;
	__u8 in, out;
	__u8 shift;
	__u8 down; /* TABLE6_LOWER and more: see there */
};
_Static_assert(sizeof(struct table6_node) == 16, "layout");

struct table6_wide_node {
	__u64 low;
	__u32 next;
	__u32 in, out;
	__u8 shift, down;
	__u16 pad;
};
_Static_assert(sizeof(struct table6_wide_node) == 24, "layout");

/* `down` of a node from which the low word of the address is the key. The next node is `next`; with
 * TABLE6_LOWER + d, cells[next + (key >> d)]. */
#define TABLE6_LOWER 64

/* Nodes on the way to a row, one more for its cell; ctl/table/table6.c keeps the bound. */
#define TABLE6_STEPS 28

/* A host is in one of two buckets, chosen by a keyed hash, in a slot given by the hash and the
 * bucket's `own` factor: one compare. Row 0: a free slot. A host in its second bucket has its bit
 * in `elsewhere` of the first. */
#define TABLE6_HOSTS 3

struct table6_line {
	__u64 key[TABLE6_HOSTS][2];
	__u64 elsewhere;
	__u16 row[TABLE6_HOSTS];
	__u16 own;
};
_Static_assert(sizeof(struct table6_line) == 64, "layout");

TABLE_INLINE __u64 table6_hash(__u64 hi, __u64 lo, __u64 seed)
{
	__u64 h = hi ^ seed;

	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	h ^= h >> 29 ^ lo;
	return (h ^ h >> 32) * 0xbf58476d1ce4e5b9ull;
}

/* The two buckets, of n. They mostly use different bits of the hash; the slot uses the low bits. */
TABLE_INLINE __u64 table6_first_line(__u64 hash, __u64 n)
{
	return BOUND_SCALE((__u32)(hash >> 32), n);
}

TABLE_INLINE __u64 table6_second_line(__u64 hash, __u64 n)
{
	return BOUND_SCALE((__u32)(hash >> 16), n);
}

TABLE_INLINE __u64 table6_place(__u64 hash, __u32 own)
{
	return BOUND_SCALE(BOUND_32((__u32)hash * own), TABLE6_HOSTS);
}

TABLE_INLINE __u64 table6_is_elsewhere(__u64 elsewhere, __u64 hash)
{
	return SHIFT_RIGHT(elsewhere, hash) & 1;
}

struct tables;

/* The datapath does not use v. */
#define TABLE6_NUMBER(name) ((void)v, TABLE_NUMBER(v, SIDE_CONSTANT(side, name)))
#define TABLE6_IS(name, is) ((void)v, TABLE_IS(v, SIDE_CONSTANT(side, name), is))
#define TABLE6_AT(name)     ((void)v, TABLE_AT(v, SIDE_CONSTANT(side, name)))

/* The row of an address in a line, 0: it is not there. */
TABLE_INLINE __u32 table6_line_row(const struct table6_line *line, __u64 hi, __u64 lo, __u64 hash)
{
	__u64 place = table6_place(hash, line->own);

	if (line->key[place][0] != hi || line->key[place][1] != lo)
		return 0;
	return line->row[place];
}

TABLE_INLINE __u32 table6_host_row(const struct tables *v, const int side, __u64 hi, __u64 lo)
{
	__u64 n = TABLE6_NUMBER(H6_LINES_N), hash = table6_hash(hi, lo, TABLE6_NUMBER(H6_SEED));
	const struct table6_line *line;
	__u32 row;

	line = (const void *)(TABLE6_AT(H6_LINES) + table6_first_line(hash, n) * sizeof(*line));
	row = table6_line_row(line, hi, lo, hash);
	if (row || !table6_is_elsewhere(line->elsewhere, hash))
		return row;
	line = (const void *)(TABLE6_AT(H6_LINES) + table6_second_line(hash, n) * sizeof(*line));
	return table6_line_row(line, hi, lo, hash);
}

TABLE_INLINE __u64 table6_cell(const struct tables *v, const int side, const int wide, __u64 cell)
{
	return wide ? ((const __u32 *)TABLE6_AT(T6_CELLS))[cell]
		    : ((const __u16 *)TABLE6_AT(T6_CELLS))[cell];
}

/* The verifier sees the same bounds for every source of the row, and follows the rest of the
 * program once. */
TABLE_INLINE __u64 table6_bound(__u64 row, const int wide, const bool small)
{
	return wide && !small ? BOUND(row, TABLE6_WIDE_LEAF - 1) : BOUND(row, TABLE_SMALL - 1);
}

/* In a loop the verifier would compare few states, and follow each way from one node to the next
 * again. */
#ifdef __bpf__
#define TABLE6_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TABLE6_UNROLL
#endif

#define TABLE6_NODE_BYTES(wide) \
	((wide) ? sizeof(struct table6_wide_node) : sizeof(struct table6_node))

TABLE_INLINE __u64 table6_node_row(const struct tables *v, const int side, const int wide, __u64 hi,
				   __u64 lo, const bool small)
{
	__u64 key = hi, at = BOUND_HIDE(table6_cell(v, side, wide, hi >> 48));

	TABLE6_UNROLL
	for (int step = 0; step < TABLE6_STEPS; step++) {
		const void *node;
		__u64 x;

		if (at >= (wide ? TABLE6_WIDE_LEAF : TABLE6_LEAF))
			return table6_bound(at, wide, small);
		at = BOUND_INDEX(at, TABLE6_NUMBER(T6_NODES_MASK));
		node = TABLE6_AT(T6_NODES) + at * TABLE6_NODE_BYTES(wide);
#define TABLE6_FIELD(f) \
	(wide ? ((const struct table6_wide_node *)node)->f : ((const struct table6_node *)node)->f)
		x = key - TABLE6_FIELD(low);
		at = TABLE6_FIELD(next);
		if (SHIFT_RIGHT(x, TABLE6_FIELD(shift))) {
			if (TABLE6_FIELD(out))
				return table6_bound(TABLE6_FIELD(out), wide, small);
			continue;
		}
		if (TABLE6_FIELD(in))
			return table6_bound(TABLE6_FIELD(in), wide, small);
		if (TABLE6_FIELD(down) >= TABLE6_LOWER) {
			key = x = BOUND_FREE(lo);
			if (TABLE6_FIELD(down) == TABLE6_LOWER)
				continue;
		}
		x = BOUND_INDEX(at + SHIFT_RIGHT(x, TABLE6_FIELD(down)),
				TABLE6_NUMBER(T6_CELLS_MASK));
#undef TABLE6_FIELD
		at = BOUND_HIDE(table6_cell(v, side, wide, x));
	}
	return table6_bound(at ^ BOUND_FREE(at), wide, small); /* 0, with the bounds of a row */
}

/* The row of an address, 1 or more; 0: the tables are damaged. small: as for table4_row(). */
TABLE_INLINE __u64 table6_row(const struct tables *v, const int side, __u64 hi, __u64 lo,
			      const bool small)
{
	if (!TABLE6_IS(H6_LINES_N, 0)) {
		__u32 row = table6_host_row(v, side, hi, lo);

		if (row)
			return table6_bound(row, 1, small);
	}
	if (TABLE6_IS(T6_KIND, TABLE6_ONE))
		return TABLE6_NUMBER(T6_NONE);
	if (TABLE6_IS(T6_KIND, TABLE6_NODES))
		return table6_node_row(v, side, 0, hi, lo, small);
	return table6_node_row(v, side, 1, hi, lo, small);
}

#undef TABLE6_NUMBER
#undef TABLE6_IS
#undef TABLE6_AT
