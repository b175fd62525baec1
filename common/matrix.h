/* SPDX-License-Identifier: GPL-2.0-only */
/* The bit matrix in the tables of a policy: its rows, the small fields, and what a matching rule
 * does.
 *
 * Each field of a packet is looked up once and yields the number of a row. A row has a bit for each
 * rule that this value of the field can satisfy. The AND of the rows is the set of rules that
 * match; the lowest bit is the first match. Rows with equal words are one row, for all fields.
 *
 * Up to 64 rules: a row is one word. More: the first word is the summary: bit w is set if word w is
 * not zero; word w is the (w + 1)th. Up to eight words a row does not cross a cache line, longer
 * ones begin with one.
 *
 * Row 0 does not exist: a look-up that yields 0 has failed. It has no rule. */
#pragma once

#include "common/bounds.h"
#include "common/policy.h"
#include "common/tables.h"

/* Which word of a row has rules 64 * word … 64 * word + 63. */
TABLE_INLINE __u32 matrix_place(__u32 word, __u32 words)
{
	return word + (words > 1);
}

/* The words of a row with its summary, padded: a power of two up to eight, else whole cache
 * lines. */
TABLE_INLINE __u32 matrix_row_words(__u32 words)
{
	__u32 all = matrix_place(words, words), size = 1;

	if (all > 8)
		return (all + 7) / 8 * 8;
	while (size < all)
		size *= 2;
	return size;
}

/* So few rows of one word need no test of their numbers: there is room for each that a byte can
 * name. */
#define MATRIX_SMALL TABLE_SMALL

/* The row of this number, or NULL. */
TABLE_INLINE const __u64 *matrix_row(const struct tables *v, const int matrix, __u64 row)
{
	__u64 offset = row;

	if (offset >= TABLE_NUMBER(v, MATRIX_CONSTANT(matrix, M_ROWS_N)))
		return NULL;
	offset = BOUND_PRODUCT(offset, TABLE_NUMBER(v, MATRIX_CONSTANT(matrix, M_ROW_BYTES)));
	return (const __u64 *)(TABLE_AT(v, MATRIX_CONSTANT(matrix, M_ROWS)) + offset);
}

/* ---- small fields ---------------------------------------------------------------------------- */

/* The number of the row in cell `index` of a table; `name`: M_SPORT and the others of
 * MATRIX_CELLS. */
TABLE_INLINE __u32 matrix_cell(const struct tables *v, const int matrix, const int name,
			       __u64 index)
{
	const __u8 *at = TABLE_AT(v, MATRIX_CONSTANT(matrix, name));

	if (TABLE_IS(v, MATRIX_CONSTANT(matrix, M_CELL), 1))
		return at[index];
	if (TABLE_IS(v, MATRIX_CONSTANT(matrix, M_CELL), 2))
		return ((const __u16 *)at)[index];
	return ((const __u32 *)at)[index];
}

TABLE_INLINE bool matrix_uses(const struct tables *v, const int matrix, const int field)
{
	return !TABLE_IS(v, MATRIX_CONSTANT(matrix, M_USES + field), 0);
}

/* M_BASE: what protocol, flags and ethertype of a common packet say together. With one word of
 * rules its cells are that word (u64), else the number of a row (u32). By family, 4 first. */
enum matrix_base {
	BASE_TCP, /* + the flags */
	BASE_UDP = 256,
	BASE_ICMP, /* or ICMPv6: without type and code */
	BASE_CELLS,
};
#define MATRIX_BASES 512 /* cells of a family, a mask */

/* ---- actions --------------------------------------------------------------------------------- */

/* Actions of the short program for the first match. */
struct matrix_action {
	__u32 counter; /* index of the rule's counter */
	__s32 reason;  /* enum weir_reason, MATRIX_ASK or matrix_limit() */
};
#define MATRIX_ASK (-1) /* the general program knows */

/* A rule whose only condition is a limit: its number and the reason for which it decides, in one
 * number below MATRIX_ASK. Only where there is one word of rules and no service. */
TABLE_INLINE __s32 matrix_limit(__u32 rule, __u32 reason)
{
	return MATRIX_ASK - 1 - (__s32)(rule << 8 | reason);
}

TABLE_INLINE __u32 matrix_limit_rule(__s32 limit)
{
	return (__u32)(MATRIX_ASK - 1 - limit) >> 8;
}

TABLE_INLINE __s32 matrix_limit_reason(__s32 limit)
{
	return (MATRIX_ASK - 1 - limit) & 0xff;
}

/* The number of the lowest bit by a De Bruijn sequence (Leiserson, Prokop and Randall 1998), in its
 * order: without a population count. The actions of a word are in that order, then the actions of
 * the next word. */
TABLE_INLINE __u64 matrix_action_place(__u64 word)
{
	return ((word & -word) * 0x03f79d71b4cb0a89ull) >> 58;
}
