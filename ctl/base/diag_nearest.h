// SPDX-License-Identifier: GPL-2.0-only
// The word that a misspelt one may mean.
#pragma once

#include <stddef.h>

// The candidate closest to `word` by edit distance (transpositions count one) if it is close enough
// to suggest (at most a third of the length, at least 1), else NULL. For "did you mean".
const char *diag_nearest(const char *word, const char *const *candidates, size_t n);
