/* SPDX-License-Identifier: GPL-2.0-only */
/* How an IPv4 address becomes the number of a row: table4_row(). ctl/table/table4.c builds the
 * tables.
 *
 * Hosts may be in buckets, found with one access by a keyed hash. An address that is in no bucket
 * is looked up in the table of its side, which has one of the kinds below. See common/tables.h for
 * TABLE_NUMBER and TABLE_AT. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "common/bounds.h"
#include "common/tables.h"

struct tables;

enum table4_kind {
	T4_ALL = 1, /* all addresses have the row T4_IN */
	T4_ONE,     /* T4_IN in one range, T4_NONE outside: no memory */
	T4_RANGES,  /* by 16 bits, then ranges; cells of 16 bits */
	T4_LONG,    /* by 20 bits, then ranges; cells of 32 bits */
	T4_WIDE,    /* the same with wide nodes: rows of more than 15 bits */
	T4_BITS,    /* two rows: a bit for each /24, or for each address of a /24 */
};

/* Ranges. A cell of T4_DIRECT or T4_CELLS holds one of:
 * - a leaf: the highest bit, and a row;
 * - the index of a node;
 * - T4_NODES_N and the index of a table: 256 cells of T4_CELLS by the next 8 bits, after that by
 *   the last 8. A node compares the lower 16 bits of the address with a range. Both ways end or
 *   lead to a later node: the highest bit and a row, or the distance of that node. After T4_DEPTH
 *   nodes there is a row. There is room for one node at least. */
#define T4_DEPTH       4
#define T4_LEAF16      (1u << 15)
#define T4_LEAF32      (1u << 31)
#define T4_SHIFT(kind) ((kind) == T4_RANGES ? 16 : 12) /* what the first bits leave */

struct table4_node {
	__u16 low, span; /* low … low + span */
	__u16 in, next;  /* inside the range, outside */
};
_Static_assert(sizeof(struct table4_node) == 8, "layout");

struct table4_wide {
	__u16 low, span;
	__u32 in, next;
	__u32 pad;
};
_Static_assert(sizeof(struct table4_wide) == 16, "layout");

/* Bits. T4_DIRECT: by the first 18 bits, bit c is the /24 with c as its next six bits. A mixed one
 * has a leaf of T4_CELLS: leaf T4_NODES[first 18 bits] + number of mixed ones before it. */
#define T4_BITS_SHIFT 14

struct table4_bits {
	__u64 mixed, in;
};

struct table4_leaf {
	__u64 in[4];
};

/* Buckets of hosts. `seed` is chosen so that no two hosts of the bucket have the same slot. The
 * highest bit: some host had no slot, it is in the table. A free slot holds an address that has
 * another slot or bucket. */
enum hosts4_kind {
	HOSTS4_NONE,
	HOSTS4_ONE, /* all have the row H4_IN */
	HOSTS4_ROWS,
};

#define HOSTS4_ONE_SLOTS  15
#define HOSTS4_ROWS_SLOTS 10
#define HOSTS4_OVERFLOW   (1u << 31)

struct hosts4_one {
	__u32 key[HOSTS4_ONE_SLOTS];
	__u32 seed;
};
_Static_assert(sizeof(struct hosts4_one) == 64, "layout");

struct hosts4_rows {
	__u32 key[HOSTS4_ROWS_SLOTS];
	__u16 row[HOSTS4_ROWS_SLOTS];
	__u32 seed;
};
_Static_assert(sizeof(struct hosts4_rows) == 64, "layout");

/* The seed of all buckets is odd. */
TABLE_INLINE __u64 hosts4_hash(__u32 addr, __u64 seed)
{
	__u64 h = addr * seed;

	return (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
}

/* Below `lines`. */
TABLE_INLINE __u64 hosts4_line(__u64 hash, __u64 lines)
{
	return BOUND_PRODUCT(hash >> 32, lines) >> 32;
}

/* Below `slots`. */
TABLE_INLINE __u64 hosts4_slot(__u64 hash, __u32 line_seed, const __u32 slots)
{
	return (__u64)(((__u32)hash ^ line_seed) * 0x9e3779b1u) * slots >> 32;
}

/* The datapath does not use v. */
#define T4_NUMBER(name) ((void)v, TABLE_NUMBER(v, SIDE_CONSTANT(side, name)))
#define T4_IS(name, is) ((void)v, TABLE_IS(v, SIDE_CONSTANT(side, name), is))
#define T4_AT(name)     ((void)v, TABLE_AT(v, SIDE_CONSTANT(side, name)))

/* A row from memory, or a leaf, whose highest bit goes. small: see table4_row(). */
TABLE_INLINE __u64 table4_bound(__u64 row, const __u32 leaf, const bool small)
{
	return small ? BOUND(row, TABLE_SMALL - 1) : BOUND(row, leaf - 1);
}

/* The row of the host, 0 if it is in no bucket; *ret_overflow: it may be in the table. */
TABLE_INLINE __u64 hosts4_row(const struct tables *v, const int side, __u32 addr, const bool small,
			      bool *ret_overflow)
{
	__u64 hash = hosts4_hash(addr, T4_NUMBER(H4_SEED));
	const __u8 *at = T4_AT(H4_LINES) + hosts4_line(hash, T4_NUMBER(H4_LINES_N)) * 64;

	if (T4_IS(H4_KIND, HOSTS4_ONE)) {
		const struct hosts4_one *line = (const void *)at;
		__u64 slot = hosts4_slot(hash, line->seed, HOSTS4_ONE_SLOTS);

		*ret_overflow = line->seed & HOSTS4_OVERFLOW;
		return line->key[slot] == addr ? T4_NUMBER(H4_IN) : 0;
	}
	const struct hosts4_rows *line = (const void *)at;
	__u64 slot = hosts4_slot(hash, line->seed, HOSTS4_ROWS_SLOTS);

	*ret_overflow = line->seed & HOSTS4_OVERFLOW;
	return line->key[slot] == addr ? table4_bound(line->row[slot], 1u << 16, small) : 0;
}

TABLE_INLINE __u64 table4_one(const struct tables *v, const int side, __u32 addr)
{
	if (addr - (__u32)T4_NUMBER(T4_LOW) <= (__u32)T4_NUMBER(T4_SPAN))
		return T4_NUMBER(T4_IN);
	return T4_NUMBER(T4_NONE);
}

/* A cell of a table of 256 cells; a leaf without row if there is no such table. */
TABLE_INLINE __u64 table4_cell(const struct tables *v, const int side, __u64 table, __u32 byte,
			       const __u32 leaf)
{
	__u64 index = (table - T4_NUMBER(T4_NODES_N)) * 256 + (byte & 255);

	if (index >= T4_NUMBER(T4_CELLS_N))
		return leaf;
	if (leaf == T4_LEAF16)
		return *(const __u16 *)(T4_AT(T4_CELLS) + index * 2);
	return *(const __u32 *)(T4_AT(T4_CELLS) + index * 4);
}

/* Where node `index` leads. */
TABLE_INLINE __u64 table4_step(const struct tables *v, const int side, __u64 index, __u32 addr,
			       const bool wide)
{
	if (wide) {
		const struct table4_wide *n = (const void *)(T4_AT(T4_NODES) + index * sizeof(*n));

		return ((addr - n->low) & 0xffff) <= n->span ? n->in : n->next;
	}
	const struct table4_node *n = (const void *)(T4_AT(T4_NODES) + index * sizeof(*n));

	return ((addr - n->low) & 0xffff) <= n->span ? n->in : n->next;
}

/* The row below the node `index`, 0 if the nodes are damaged. */
TABLE_INLINE __u64 table4_nodes(const struct tables *v, const int side, __u64 index, __u32 addr,
				const bool wide, const bool small)
{
	const __u32 leaf = wide ? T4_LEAF32 : T4_LEAF16;

#pragma GCC unroll 4
	for (int i = 0; i < T4_DEPTH; i++) {
		__u64 to;

		index = BOUND_BELOW(index, T4_NUMBER(T4_NODES_N));
		to = BOUND_HIDE(table4_step(v, side, index, addr, wide));
		if (to >= leaf)
			return table4_bound(to, leaf, small);
		index += to;
	}
	return 0;
}

TABLE_INLINE __u64 table4_ranges(const struct tables *v, const int side, __u32 addr, const int kind,
				 const bool small)
{
	const __u32 leaf = kind == T4_RANGES ? T4_LEAF16 : T4_LEAF32;
	const __u32 shift = T4_SHIFT(kind);
	__u64 e = addr >> shift;

	e = kind == T4_RANGES ? *(const __u16 *)(T4_AT(T4_DIRECT) + e * 2)
			      : *(const __u32 *)(T4_AT(T4_DIRECT) + e * 4);
	e = BOUND_HIDE(e);
	if (e >= leaf)
		return table4_bound(e, leaf, small);
	if (!T4_IS(T4_CELLS_N, 0) && e >= T4_NUMBER(T4_NODES_N)) {
		e = BOUND_HIDE(table4_cell(v, side, e, addr >> (shift - 8), leaf));
		if (e < leaf && e >= T4_NUMBER(T4_NODES_N))
			e = BOUND_HIDE(table4_cell(v, side, e, addr, leaf));
		if (e >= leaf)
			return table4_bound(e, leaf, small);
	}
	return table4_nodes(v, side, e, addr, kind == T4_WIDE, small);
}

TABLE_INLINE __u64 table4_popcount(__u64 x)
{
	x -= x >> 1 & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return x * 0x0101010101010101ull >> 56;
}

TABLE_INLINE __u64 table4_bits(const struct tables *v, const int side, __u32 addr)
{
	__u64 i = BOUND(addr >> T4_BITS_SHIFT, (1u << (32 - T4_BITS_SHIFT)) - 1);
	const struct table4_bits *n = (const void *)(T4_AT(T4_DIRECT) + i * sizeof(*n));
	__u64 bit = addr >> 8 & 63, word = n->in;

	if (n->mixed >> bit & 1) {
		__u64 before = n->mixed & ~(~0ull << bit);

		i = *(const __u32 *)(T4_AT(T4_NODES) + i * 4) + table4_popcount(before);
		if (i >= T4_NUMBER(T4_CELLS_N))
			return 0;
		word = *(const __u64 *)(T4_AT(T4_CELLS) + i * sizeof(struct table4_leaf) +
					(addr >> 6 & 3) * 8);
		bit = addr & 63;
	}
	return word >> bit & 1 ? T4_NUMBER(T4_ROW1) : T4_NUMBER(T4_ROW0);
}

/* The row of an address in host order; 0 if the tables are damaged. small, a constant: the rows are
 * below TABLE_SMALL, which the verifier must know. Each test uses a separate constant: a variable
 * with the kind would be kept on the stack. */
TABLE_INLINE __u64 table4_row(const struct tables *v, const int side, __u32 addr, const bool small)
{
	if (!T4_IS(H4_KIND, HOSTS4_NONE)) {
		bool overflow;
		__u64 row = hosts4_row(v, side, addr, small, &overflow);

		if (row)
			return row;
		if (!T4_IS(H4_NONE, 0) && !overflow)
			return T4_NUMBER(H4_NONE);
	}
	if (T4_IS(T4_KIND, T4_ALL))
		return T4_NUMBER(T4_IN);
	if (T4_IS(T4_KIND, T4_ONE))
		return table4_one(v, side, addr);
	if (T4_IS(T4_KIND, T4_RANGES))
		return table4_ranges(v, side, addr, T4_RANGES, small);
	if (T4_IS(T4_KIND, T4_LONG))
		return table4_ranges(v, side, addr, T4_LONG, small);
	if (T4_IS(T4_KIND, T4_WIDE))
		return table4_ranges(v, side, addr, T4_WIDE, small);
	if (T4_IS(T4_KIND, T4_BITS))
		return table4_bits(v, side, addr);
	return 0;
}

#undef T4_NUMBER
#undef T4_IS
#undef T4_AT
