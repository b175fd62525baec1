// SPDX-License-Identifier: GPL-2.0-only
// Memory that is freed all at once: strings and arrays of a policy.
#pragma once

#include <stddef.h>

struct arena_block;

struct arena { // {0} is an empty one
	struct arena_block *blocks;
};

// Zeroed memory for n items of `size` bytes, aligned for any type; never NULL.
void *arena_zalloc(struct arena *p, size_t n, size_t size);
// A copy of n items; never NULL.
void *arena_copy(struct arena *p, const void *items, size_t n, size_t size);
const char *arena_strndup(struct arena *p, const char *s, size_t len);
const char *arena_strdup(struct arena *p, const char *s); // NULL stays NULL
__attribute__((format(printf, 2, 3))) const char *arena_printf(struct arena *p, const char *fmt,
							       ...);
void arena_free(struct arena *p); // p is empty and usable afterwards
