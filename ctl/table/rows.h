// SPDX-License-Identifier: GPL-2.0-only
// The rows of the bit matrix: each distinct one is stored once, whatever fields use it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/matrix.h"

// A row that is being put together, with a hash that follows each change.
struct row {
	size_t words;
	uint64_t hash;
	uint64_t word[POLICY_WORDS_MAX];
};

void row_init(struct row *row, size_t words); // no rule
void row_flip(struct row *row, size_t word, uint64_t bits);
static inline void row_flip_rule(struct row *row, size_t rule)
{
	row_flip(row, rule / 64, 1ull << (rule % 64));
}

struct rows {
	size_t words; // of a row
	uint64_t *at;
	size_t n, cap, max; // rows
	uint32_t *buckets;  // hash table of row numbers, 0: free
	size_t n_buckets;
};

// At most max_bytes of rows (but always room for rows 0 and 1). Row 0 is there and never found.
void rows_init(struct rows *rows, size_t words, uint64_t max_bytes);
void rows_free(struct rows *rows);

// The number of the row, which is added if it is new; 0 when there is no room for it. While rows
// are added the whole takes at most about twice max_bytes.
policy_row rows_add(struct rows *rows, const struct row *row);

// Gives row i the number number[i], a permutation that keeps 0 and 1. Ends the adding of rows;
// number[] is used up.
void rows_renumber(struct rows *rows, uint32_t *number);

// Word `word` of row `number`.
static inline uint64_t rows_word(const struct rows *rows, policy_row number, size_t word)
{
	return rows->at[number * rows->words + word];
}
