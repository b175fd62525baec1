// SPDX-License-Identifier: GPL-2.0-only
// The growth of the arrays of vec.h: by doubling, so that adding n items copies each about twice.
#include "ctl/base/vec.h"

#include <stdint.h>

#define VEC_FIRST 8 // items

void *vec_grow_(void *at, size_t *cap, size_t need, size_t size)
{
	size_t doubled = *cap > SIZE_MAX / 2 ? SIZE_MAX : *cap * 2;
	size_t room = doubled > VEC_FIRST ? doubled : VEC_FIRST;

	if (room < need)
		room = need;
	at = mem_realloc(at, room, size);
	*cap = room;
	return at;
}

// Every vector begins with its array.
void vec_cleanup_(void *vec)
{
	mem_cleanup_free(vec);
}
