// SPDX-License-Identifier: GPL-2.0-only
// Open addressing, with a hash that an author of names cannot attack.
#include "ctl/policy/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ctl/base/mem.h"

#define FIRST_SIZE 16

static uint64_t seed(void)
{
	static uint64_t value;

	// Without randomness (before boot has gathered some) the hash is only predictable.
	if (!value && getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = 1;
	return value;
}

static uint64_t hash_of(const char *name)
{
	uint64_t h = seed();

	for (; *name; name++) {
		h = (h ^ (unsigned char)*name) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	return h ^ h >> 32;
}

// The slot that holds the name, or the free one where it belongs.
static struct index_slot *slot_of(const struct index *x, const char *name, uint64_t hash)
{
	size_t at = hash & (x->size - 1);

	while (x->slots[at].name &&
	       (x->slots[at].hash != hash || strcmp(x->slots[at].name, name) != 0))
		at = (at + 1) & (x->size - 1);
	return &x->slots[at];
}

static void grow(struct index *x)
{
	struct index bigger = {.n = x->n, .size = x->size ? x->size * 2 : FIRST_SIZE};

	bigger.slots = mem_zalloc(bigger.size, sizeof(*bigger.slots));
	for (size_t i = 0; i < x->size; i++)
		if (x->slots[i].name)
			*slot_of(&bigger, x->slots[i].name, x->slots[i].hash) = x->slots[i];
	free(x->slots);
	*x = bigger;
}

uint32_t index_add(struct index *x, const char *name, uint32_t number)
{
	uint64_t hash = hash_of(name);
	struct index_slot *slot;

	if (x->n * 2 >= x->size)
		grow(x);
	slot = slot_of(x, name, hash);
	if (slot->name)
		return slot->number;
	*slot = (struct index_slot){.name = name, .hash = hash, .number = number};
	x->n++;
	return number;
}

uint32_t index_find(const struct index *x, const char *name)
{
	const struct index_slot *slot;

	if (!x->n)
		return INDEX_NONE;
	slot = slot_of(x, name, hash_of(name));
	return slot->name ? slot->number : INDEX_NONE;
}

void index_free(struct index *x)
{
	free(x->slots);
	*x = (struct index){0};
}
