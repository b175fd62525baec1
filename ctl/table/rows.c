// SPDX-License-Identifier: GPL-2.0-only
// A growing array of rows, and a hash table of their numbers.
#include "ctl/table/rows.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

#define ROWS_BUCKETS_FIRST 256
#define ROWS_FIRST         64
#define ROWS_LIMIT         (1u << 31) // address tables mark rows with the uppermost bit

// A word's part of the hash of its row: 0 for 0, so that an empty row costs nothing.
static uint64_t word_hash(size_t index, uint64_t word)
{
	uint64_t h = word * ((2 * index + 1) * 0x9e3779b97f4a7c15ull);

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

void row_init(struct row *row, size_t words)
{
	memset(row, 0, sizeof(*row));
	row->words = words;
}

void row_flip(struct row *row, size_t word, uint64_t bits)
{
	uint64_t now = row->word[word] ^ bits;

	row->hash ^= word_hash(word, row->word[word]) ^ word_hash(word, now);
	row->word[word] = now;
}

static uint64_t *row_at(const struct rows *rows, size_t number)
{
	return rows->at + number * rows->words;
}

static uint64_t row_hash(const struct rows *rows, size_t number)
{
	uint64_t hash = 0;

	for (size_t w = 0; w < rows->words; w++)
		hash ^= word_hash(w, row_at(rows, number)[w]);
	return hash;
}

void rows_init(struct rows *rows, size_t words, uint64_t max_bytes)
{
	*rows = (struct rows){.words = words};
	rows->max = (size_t)(max_bytes / (matrix_row_words((uint32_t)words) * sizeof(uint64_t)));
	if (rows->max < POLICY_ROW_ALL + 1)
		rows->max = POLICY_ROW_ALL + 1;
	if (rows->max > ROWS_LIMIT)
		rows->max = ROWS_LIMIT;
	rows->cap = rows->max < ROWS_FIRST ? rows->max : ROWS_FIRST;
	rows->at = mem_zalloc(rows->cap * rows->words, sizeof(uint64_t));
	rows->n = 1;
	rows->n_buckets = ROWS_BUCKETS_FIRST;
	rows->buckets = mem_zalloc(rows->n_buckets, sizeof(*rows->buckets));
}

void rows_free(struct rows *rows)
{
	free(rows->at);
	free(rows->buckets);
	*rows = (struct rows){0};
}

// The old table goes first: hashes are made from the rows again, so both never exist at once.
static void rows_rehash(struct rows *rows)
{
	rows->n_buckets *= 2;
	free(rows->buckets);
	rows->buckets = mem_zalloc(rows->n_buckets, sizeof(*rows->buckets));
	for (size_t i = 1; i < rows->n; i++) {
		size_t bucket = row_hash(rows, i) & (rows->n_buckets - 1);

		while (rows->buckets[bucket])
			bucket = (bucket + 1) & (rows->n_buckets - 1);
		rows->buckets[bucket] = (uint32_t)i;
	}
}

static void rows_grow(struct rows *rows)
{
	size_t cap = rows->cap + rows->cap / 2;

	rows->cap = cap < rows->max ? cap : rows->max;
	rows->at = mem_realloc(rows->at, rows->cap * rows->words, sizeof(uint64_t));
}

// The bucket of the row, or where it belongs.
static size_t rows_find(const struct rows *rows, const struct row *row)
{
	size_t bucket = row->hash & (rows->n_buckets - 1);

	while (rows->buckets[bucket] && memcmp(row_at(rows, rows->buckets[bucket]), row->word,
					       rows->words * sizeof(uint64_t)) != 0)
		bucket = (bucket + 1) & (rows->n_buckets - 1);
	return bucket;
}

policy_row rows_add(struct rows *rows, const struct row *row)
{
	size_t bucket = rows_find(rows, row);

	if (rows->buckets[bucket])
		return rows->buckets[bucket];
	if (rows->n == rows->max)
		return 0;
	if (rows->n == rows->cap)
		rows_grow(rows);
	if ((rows->n + 1) * 4 > rows->n_buckets * 3) {
		rows_rehash(rows);
		bucket = rows_find(rows, row);
	}
	memcpy(row_at(rows, rows->n), row->word, rows->words * sizeof(uint64_t));
	rows->buckets[bucket] = (uint32_t)rows->n;
	return (policy_row)rows->n++;
}

void rows_renumber(struct rows *rows, uint32_t *number)
{
	uint64_t moving[POLICY_WORDS_MAX + 1], displaced[POLICY_WORDS_MAX + 1];
	size_t bytes = rows->words * sizeof(uint64_t);

	free(TAKE_PTR(rows->buckets));
	for (uint32_t i = 0; i < rows->n; i++) {
		uint32_t from = i;

		// Along the cycle of the permutation that begins at i, in place.
		memcpy(moving, row_at(rows, i), bytes);
		while (number[from] != from) {
			uint32_t to = number[from];

			memcpy(displaced, row_at(rows, to), bytes);
			memcpy(row_at(rows, to), moving, bytes);
			memcpy(moving, displaced, bytes);
			number[from] = from;
			from = to;
		}
	}
}
