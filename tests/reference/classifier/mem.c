// SPDX-License-Identifier: GPL-2.0-only
// Memory that is freed all at once, and arrays that grow in it.
#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block {
	struct block *prev;
	struct block *next;
	max_align_t data[];
};

static struct block *block_of(void *data)
{
	return (struct block *)(void *)((char *)data - offsetof(struct block, data));
}

static void block_link(struct pool *pool, struct block *block)
{
	if (block->prev)
		block->prev->next = block;
	else
		pool->blocks = block;
	if (block->next)
		block->next->prev = block;
}

static void *must(void *memory)
{
	if (!memory) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return memory;
}

void *pool_alloc(struct pool *pool, size_t bytes)
{
	struct block *block = must(calloc(1, sizeof(*block) + bytes));

	block->next = pool->blocks;
	block_link(pool, block);
	return block->data;
}

char *pool_text(struct pool *pool, const char *text, size_t len)
{
	char *copy = pool_alloc(pool, len + 1);

	if (len)
		memcpy(copy, text, len);
	return copy;
}

char *pool_printf(struct pool *pool, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		abort();
	text = pool_alloc(pool, (size_t)len + 1);
	va_start(args, format);
	vsnprintf(text, (size_t)len + 1, format, args);
	va_end(args);
	return text;
}

void *pool_room(struct pool *pool, void *array, size_t used, size_t *cap, size_t size)
{
	struct block *block;

	if (used < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 4;
	if (!array)
		return pool_alloc(pool, *cap * size);
	block = must(realloc(block_of(array), sizeof(*block) + *cap * size));
	block_link(pool, block);
	return block->data;
}

void pool_free(struct pool *pool)
{
	struct block *block = pool->blocks;

	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
	pool->blocks = NULL;
}
