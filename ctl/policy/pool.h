// SPDX-License-Identifier: GPL-2.0-only
// Memory that is freed all at once: strings and arrays of a policy.
#pragma once

#include <stddef.h>

struct pool_block;

struct pool { // {0} is an empty one
	struct pool_block *blocks;
};

// Zeroed memory for n items of `size` bytes, aligned for any type; never NULL.
void *pool_zalloc(struct pool *p, size_t n, size_t size);
#define pool_new(p, type) ((type *)pool_zalloc(p, 1, sizeof(type)))
// A copy of n items; never NULL.
void *pool_copy(struct pool *p, const void *items, size_t n, size_t size);
const char *pool_strndup(struct pool *p, const char *s, size_t len);
const char *pool_strdup(struct pool *p, const char *s); // NULL stays NULL
__attribute__((format(printf, 2, 3))) const char *pool_printf(struct pool *p, const char *fmt, ...);
void pool_free(struct pool *p); // p is empty and usable afterwards
