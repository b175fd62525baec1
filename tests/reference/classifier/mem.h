// SPDX-License-Identifier: GPL-2.0-only
// Memory that is freed all at once, and arrays that grow in it; out of memory ends the program.
#ifndef REF_MEM_H
#define REF_MEM_H

#include <stddef.h>

struct block;

struct pool {
	struct block *blocks;
};

void *pool_alloc(struct pool *pool, size_t bytes); /* zeroed */
char *pool_text(struct pool *pool, const char *text, size_t len);
char *pool_printf(struct pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pool_free(struct pool *pool);

/* Makes room for one element more; the array may move. */
void *pool_room(struct pool *pool, void *array, size_t used, size_t *cap, size_t size);

#define VEC(type)           \
	struct {            \
		type *v;    \
		size_t len; \
		size_t cap; \
	}

/* Pointer to a new element at the end; its bytes are not cleared. */
#define vec_add(pool, vec)                                                                   \
	((vec)->v = pool_room((pool), (vec)->v, (vec)->len, &(vec)->cap, sizeof(*(vec)->v)), \
	 &(vec)->v[(vec)->len++])

#endif
