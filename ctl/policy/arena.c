// SPDX-License-Identifier: GPL-2.0-only
// A bump allocator: small objects share blocks, large ones get a block of their own.
#include "ctl/policy/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

#define BLOCK_BYTES 16384
#define ALIGN       16

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ALIGN) char bytes[];
};

static struct arena_block *add_block(struct arena *p, size_t bytes)
{
	size_t size = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
	struct arena_block *block = mem_zalloc(1, sizeof(*block) + size);

	block->size = size;
	// A block that is full from the start is inserted after the one that still has room.
	if (p->blocks && size != BLOCK_BYTES) {
		block->next = p->blocks->next;
		p->blocks->next = block;
	} else {
		block->next = p->blocks;
		p->blocks = block;
	}
	return block;
}

void *arena_zalloc(struct arena *p, size_t n, size_t size)
{
	struct arena_block *block = p->blocks;
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > (size_t)-1 / 2)
		return mem_zalloc(n, size); // ends the program: there is not so much memory
	bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	if (!block || block->size - block->used < bytes)
		block = add_block(p, bytes);
	at = block->bytes + block->used;
	block->used += bytes;
	return at;
}

void *arena_copy(struct arena *p, const void *items, size_t n, size_t size)
{
	void *at = arena_zalloc(p, n, size);

	if (n)
		memcpy(at, items, n * size);
	return at;
}

const char *arena_strndup(struct arena *p, const char *s, size_t len)
{
	char *at = arena_zalloc(p, len + 1, 1);

	if (len)
		memcpy(at, s, len);
	return at;
}

const char *arena_strdup(struct arena *p, const char *s)
{
	return s ? arena_strndup(p, s, strlen(s)) : NULL;
}

const char *arena_printf(struct arena *p, const char *fmt, ...)
{
	va_list ap, again;
	char *at;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	at = arena_zalloc(p, (size_t)len + 1, 1);
	vsnprintf(at, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return at;
}

void arena_free(struct arena *p)
{
	while (p->blocks) {
		struct arena_block *next = p->blocks->next;

		free(p->blocks);
		p->blocks = next;
	}
}
