/* SPDX-License-Identifier: GPL-2.0-only */
/* The rows that a packet has in a bit matrix, and their AND (common/matrix.h). */
#pragma once

#include "xdp/tables.bpf.h"

/* The rows by field. Only rows of fields that the matrix uses are set and read. With one word of
 * rules their AND is the whole result. */
struct matrix {
	const __u64 *row[POLICY_FIELDS];
	__u64 word;
	__u64 filled; /* eight bytes: the verifier follows those when they are spilled */
};

/* Adds the row of a field; false when there is no such row. */
static __always_inline bool matrix_add(struct matrix *m, const int matrix, const int field,
				       __u64 row)
{
	if (TABLE_IS(NULL, MATRIX_CONSTANT(matrix, M_WORDS), 1)) {
		const __u64 *words = (const void *)TABLE_AT(NULL, MATRIX_CONSTANT(matrix, M_ROWS));

		if (row >= TABLE_NUMBER(NULL, MATRIX_CONSTANT(matrix, M_ROWS_N)))
			return false;
		m->word &= words[row];
		return true;
	}
	return (m->row[field] = matrix_row(NULL, matrix, row)) != NULL;
}

/* The AND so far and the row of a field in word `place`. */
static __always_inline __u64 matrix_and(const struct matrix *m, const int field, __u32 place,
					__u64 word)
{
	return matrix_uses(NULL, MATRIX_RULES, field) ? word & m->row[field][place] : word;
}

/* Word `place` of the AND of the rows of all fields; more than one word of rules. Written out: the
 * number of a marker must be a constant before loops are unrolled. */
static __always_inline __u64 matrix_word(const struct matrix *m, __u32 place)
{
#define AND_FIELD(field, ...) word = matrix_and(m, FIELD_##field, place, word);
	__u64 word = ~0ull;

	MATRIX_FIELDS(AND_FIELD)
	return word;
#undef AND_FIELD
}
