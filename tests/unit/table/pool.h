// SPDX-License-Identifier: GPL-2.0-only
// Pools of backends for the tests of rings.
#pragma once

#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/ring.h"

#define POOL_MAX 1024

struct arena {
	struct ring_backend at[POOL_MAX];
	size_t n;
};

// 10.0.0.1, 10.0.0.2, …; every fourth is 2001:db8::N instead. Numbers from 1 on, weight 1.
static inline struct ring_backend arena_backend(uint32_t i)
{
	static const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};
	struct ring_backend b = {.id = (uint16_t)(i + 1), .weight = 1, .state = BACKEND_UP};

	b.addr.family = i % 4 == 3 ? 6 : 4;
	if (b.addr.family == 6)
		memcpy(b.addr.bytes, net6, sizeof(net6));
	else
		b.addr.bytes[0] = 10;
	b.addr.bytes[b.addr.family == 6 ? 14 : 2] = (uint8_t)((i + 1) >> 8);
	b.addr.bytes[b.addr.family == 6 ? 15 : 3] = (uint8_t)(i + 1);
	return b;
}

static inline struct arena arena_of(size_t n)
{
	struct arena p = {.n = n};

	for (uint32_t i = 0; i < n; i++)
		p.at[i] = arena_backend(i);
	return p;
}

static inline void arena_fill(const struct arena *p, const struct hash_key *key, uint32_t size,
			      uint16_t *ret)
{
	assert_int_equal(ring_fill(key, p->at, p->n, size, ret), 0);
}

static inline size_t arena_slots(const uint16_t *owners, uint32_t size, uint32_t id)
{
	size_t n = 0;

	for (uint32_t i = 0; i < size; i++)
		n += owners[i] == id;
	return n;
}
