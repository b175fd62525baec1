// SPDX-License-Identifier: GPL-2.0-only
// Compares words by the edits that turn one into the other.
#include "ctl/base/diag_nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/base/mem.h"

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

// Edits that turn a[0..i] into b[0..j], from the three rows of the table that are kept: this one is
// row i, counted from 1.
static size_t cell(size_t *const rows[3], const char *a, size_t i, const char *b, size_t j)
{
	size_t n = rows[1][j - 1] + !same(a[i - 1], b[j - 1]);

	n = least(n, least(rows[1][j], rows[0][j - 1]) + 1);
	if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
		n = least(n, rows[2][j - 2] + 1);
	return n;
}

// Optimal string alignment: insertion, deletion, substitution and the transposition of neighbours
// count one; upper and lower case are the same. G. Navarro, "A guided tour to approximate string
// matching", ACM Computing Surveys 33(1), 2001.
static size_t distance(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	CLEANUP_FREE size_t *memory = mem_zalloc(3 * (b_len + 1), sizeof(size_t));
	size_t *rows[3] = {memory, memory + b_len + 1, memory + 2 * (b_len + 1)};

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *oldest = rows[2];

		rows[2] = rows[1];
		rows[1] = rows[0];
		rows[0] = oldest;
		rows[0][0] = i;
		for (size_t j = 1; j <= b_len; j++)
			rows[0][j] = cell(rows, a, i, b, j);
	}
	return rows[0][b_len];
}

const char *diag_nearest(const char *word, const char *const *candidates, size_t n)
{
	size_t len = strlen(word), limit = len >= 6 ? len / 3 : 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t other = strlen(candidates[i]);
		size_t apart = len > other ? len - other : other - len, d;

		if (apart > limit)
			continue;
		d = distance(word, candidates[i]);
		// A word of one letter that is another one has nothing in common with it.
		if (d > limit || d >= (len > other ? len : other))
			continue;
		nearest = candidates[i];
		limit = d - (d > 0); // only a closer one is better
		if (d == 0)
			break;
	}
	return nearest;
}
