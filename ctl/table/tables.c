// SPDX-License-Identifier: GPL-2.0-only
// A growing piece of memory, and what programs find in it.
#include "ctl/table/tables.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

void tables_free(struct tables *t)
{
	free(t->at);
	*t = (struct tables){0};
}

static void grow(struct tables *t, size_t need)
{
	size_t cap = need + need / 2;

	t->at = mem_realloc(t->at, cap, 1);
	memset(t->at + t->cap, 0, cap - t->cap);
	t->cap = cap;
}

size_t tables_add(struct tables *t, size_t bytes)
{
	size_t offset = (t->n + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;

	if (offset + bytes > t->cap)
		grow(t, offset + bytes);
	t->n = offset + bytes;
	return offset;
}

void tables_number(struct tables *t, int number, uint64_t value)
{
	t->constant[number] = (struct table_constant){.set = true, .value = value};
}

void tables_address(struct tables *t, int number, size_t offset)
{
	t->constant[number] =
		(struct table_constant){.set = true, .address = true, .value = offset};
}
