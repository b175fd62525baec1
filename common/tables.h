/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of a policy: one array value, written by ctl/table, read by both programs of a policy.
 *
 * A program finds everything in it by constants in its instructions: the byte offset of a table
 * becomes the address of an element of the value, a count or a row becomes a number. The list below
 * names these constants; common/table4.h and common/table6.h read address tables, common/matrix.h
 * the rest.
 *
 * The readers are compiled for the datapath and for user space. `TABLE_NUMBER(v, constant)` is the
 * number, as 64 bits; `TABLE_IS(v, constant, value)` tests for one value, which costs the datapath
 * nothing; `TABLE_AT(v, constant)` is the address of the first byte of a table. v is a `const
 * struct tables *` in user space and NULL in the datapath, where xdp/tables.bpf.h defines both. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/fields.h"

#define TABLE_INLINE static inline __attribute__((always_inline))

/* Each table begins at a multiple of this: a cache line. */
#define TABLE_ALIGN 64

/* So few rows have numbers of one byte. */
#define TABLE_SMALL 256

/* The address of a packet is looked up on these sides. A member is the destination of a packet,
 * looked up among the addresses of services. */
enum table_side {
	SIDE_SOURCE,
	SIDE_DESTINATION,
	SIDE_MEMBER,
	TABLE_SIDES,
};

/* Constants of one side. `_N`: number of elements of the table before it. */
enum table_side_constant {
	T4_KIND,   /* enum table4_kind */
	T4_NONE,   /* T4_ONE: the row of the addresses outside */
	T4_LOW,    /* T4_ONE: the first address inside, host order */
	T4_SPAN,   /* T4_ONE: the last one less the first */
	T4_IN,     /* T4_ONE: the row inside */
	T4_DIRECT, /* table: by the first bits of the address */
	T4_SHIFT,  /* T4_LONG, T4_WIDE: 32 less their number */
	T4_NODES,
	T4_NODES_N,
	T4_CELLS,
	T4_CELLS_N,
	T4_ROW0, /* T4_BITS: the row of a bit that is 0 */
	T4_ROW1,
	H4_KIND, /* enum hosts4_kind */
	H4_LINES,
	H4_LINES_N,
	H4_IN,   /* HOSTS4_ONE: the row of all hosts */
	H4_NONE, /* row of addresses in no bucket; 0: look up the table */
	H4_SEED,
	T6_KIND,
	T6_NONE,
	T6_CELLS,
	T6_CELLS_MASK, /* mask of a cell's number: their count, a power of two, less 1 */
	T6_NODES,
	T6_NODES_MASK,
	H6_LINES,
	H6_LINES_N, /* 0: no lines */
	H6_SEED,
	TABLE_SIDE_CONSTANTS,
};

#define TABLE_OF_FIELD(field, ...) M_##field,

/* Constants of a matrix: of the rules, and of the services. */
enum table_matrix_constant {
	M_WORDS, /* 0: no rules; 1: rows are words; else they are lines, see common/matrix.h */
	M_SMALL, /* 1: one word, at most MATRIX_SMALL rows, cells of one byte */
	M_ROWS,
	M_ROWS_N,
	M_ROW_BYTES,
	M_CELL, /* bytes of a cell of the fields below: 1, 2 or 4 */
	M_BASE, /* table: cells for common combinations of protocol, flags and ethertype */
	MATRIX_CELLS(TABLE_OF_FIELD) /* tables by field */
	M_USES,                      /* by enum policy_field: 1 if it is looked up */
	M_USES_LAST = M_USES + POLICY_FIELDS - 1,
	M_ACTIONS, /* table: struct matrix_action */
	TABLE_MATRIX_CONSTANTS,
};

enum table_matrix {
	MATRIX_RULES,
	MATRIX_MEMBERS,
	TABLE_MATRICES,
};

#define SIDE_CONSTANT(side, name) ((int)(side) * (int)TABLE_SIDE_CONSTANTS + (int)(name))
#define MATRIX_CONSTANT(matrix, name)                   \
	((int)TABLE_SIDES * (int)TABLE_SIDE_CONSTANTS + \
	 (int)(matrix) * (int)TABLE_MATRIX_CONSTANTS + (int)(name))
/* Constants of the services, see common/vips.h. */
enum table_vip_constant {
	V4_LINES,
	V4_LINES_N, /* 0: no lines */
	V4_SEED,
	V6_LINES,
	V6_LINES_N,
	V6_SEED,
	VIPS_ALL, /* 1: a packet with ports whose destination is in no bucket is for no service */
	TABLE_VIP_CONSTANTS,
};

/* Constants of conditions, see common/edges.h. */
enum table_list_constant {
	L_EDGES,
	L_EDGES_N, /* at least 1 */
	L_PAIRS6,  /* IPv6 addresses of pairs */
	L_PAIRS6_N,
	TABLE_LIST_CONSTANTS,
};

#define VIP_CONSTANT(name)  ((int)(name) + MATRIX_CONSTANT(TABLE_MATRICES, 0))
#define LIST_CONSTANT(name) ((int)(name) + VIP_CONSTANT(TABLE_VIP_CONSTANTS))
#define TABLE_CONSTANTS     LIST_CONSTANT(TABLE_LIST_CONSTANTS)

#ifdef __bpf__

struct tables;

#else

struct table_constant {
	bool set;
	bool address; /* value is a byte offset into the tables */
	__u64 value;
};

struct tables {
	__u8 *at; /* n bytes, zeroed when they are added */
	size_t n, cap;
	struct table_constant constant[TABLE_CONSTANTS];
};

#define TABLE_NUMBER(v, name) ((v)->constant[name].value)
#define TABLE_IS(v, name, is) ((v)->constant[name].value == (__u64)(is))
#define TABLE_AT(v, name)     ((const __u8 *)(v)->at + (v)->constant[name].value)

#endif
