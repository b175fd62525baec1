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

// The bucket that holds the name, or the free one where it belongs.
static struct index_bucket *bucket_of(const struct index *x, const char *name, uint64_t hash)
{
	size_t at = hash & (x->size - 1);

	while (x->buckets[at].name &&
	       (x->buckets[at].hash != hash || strcmp(x->buckets[at].name, name) != 0))
		at = (at + 1) & (x->size - 1);
	return &x->buckets[at];
}

static void grow(struct index *x)
{
	struct index bigger = {.n = x->n, .size = x->size ? x->size * 2 : FIRST_SIZE};

	bigger.buckets = mem_zalloc(bigger.size, sizeof(*bigger.buckets));
	for (size_t i = 0; i < x->size; i++)
		if (x->buckets[i].name)
			*bucket_of(&bigger, x->buckets[i].name, x->buckets[i].hash) = x->buckets[i];
	free(x->buckets);
	*x = bigger;
}

uint32_t index_add(struct index *x, const char *name, uint32_t number)
{
	uint64_t hash = hash_of(name);
	struct index_bucket *bucket;

	if (x->n * 2 >= x->size)
		grow(x);
	bucket = bucket_of(x, name, hash);
	if (bucket->name)
		return bucket->number;
	*bucket = (struct index_bucket){.name = name, .hash = hash, .number = number};
	x->n++;
	return number;
}

uint32_t index_find(const struct index *x, const char *name)
{
	const struct index_bucket *bucket;

	if (!x->n)
		return INDEX_NONE;
	bucket = bucket_of(x, name, hash_of(name));
	return bucket->name ? bucket->number : INDEX_NONE;
}

void index_free(struct index *x)
{
	free(x->buckets);
	*x = (struct index){0};
}
