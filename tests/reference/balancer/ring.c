// SPDX-License-Identifier: GPL-2.0-only
// The owner of each slot, step by step as in docs/ring.md; plain rather than fast.
#include "ring.h"

#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "words.h"

#define MESSAGE 24

/* A backend in the order, and its progress. */
struct entry {
	const struct backend *backend;
	uint8_t message[MESSAGE];
	uint64_t hash;
	uint32_t share;
	uint32_t turn;
	uint32_t wish; /* the slot it wants next */
	uint32_t skip;
};

void ring_key_from_seed(const void *seed, size_t len, uint8_t ret_key[SIPHASH_KEY])
{
	static const uint8_t zeros[SIPHASH_KEY];
	uint8_t *message = memory(6 + len, 1);

	memcpy(message, "seed2", 5);
	if (len)
		memcpy(message + 6, seed, len);
	for (unsigned int half = 0; half < 2; half++) {
		message[5] = (uint8_t)half;
		bytes_lower_first(ret_key + 8 * half, siphash13(zeros, message, 6 + len), 8);
	}
	free(message);
}

bool ring_size_valid(uint64_t size)
{
	if (size < RING_SIZE_MIN || size > RING_SIZE_MAX)
		return false;
	for (uint64_t i = 2; i * i <= size; i++)
		if (size % i == 0)
			return false;
	return true;
}

static void backend_message(const struct backend *backend, uint8_t ret_message[MESSAGE])
{
	memcpy(ret_message, "ring2", 5);
	ret_message[5] = backend->family;
	bytes_network(ret_message + 6, backend->port, 2);
	memcpy(ret_message + 8, backend->address, 16);
}

uint64_t ring_backend_hash(const uint8_t *key, const struct backend *backend)
{
	uint8_t message[MESSAGE];

	backend_message(backend, message);
	return siphash13(key, message, MESSAGE);
}

static int entry_compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return memcmp(a->message, b->message, MESSAGE);
}

static struct entry entry_make(const struct ring *ring, const struct backend *backend)
{
	struct entry entry = {.backend = backend};

	backend_message(backend, entry.message);
	entry.hash = siphash13(ring->key, entry.message, MESSAGE);
	entry.wish = flow_scale((uint32_t)entry.hash, ring->size);
	entry.skip = flow_scale((uint32_t)(entry.hash >> 32), ring->size - 1) + 1;
	return entry;
}

static bool backend_ready(const struct backend *backend, bool backup)
{
	return backend->state == BACKEND_UP && backend->weight && backend->backup == backup;
}

/* Backups count only if no other backend does. */
static bool backups_count(const struct ring *ring)
{
	for (size_t i = 0; i < ring->count; i++)
		if (backend_ready(&ring->backends[i], false))
			return false;
	return true;
}

bool ring_counts(const struct ring *ring, const struct backend *backend)
{
	return backend_ready(backend, backups_count(ring));
}

/* All backends in their order, or those that count; to be freed. */
static struct entry *entries_sorted(const struct ring *ring, bool all, size_t *ret_count)
{
	struct entry *entries = memory(ring->count, sizeof(*entries));
	bool backup = backups_count(ring);
	size_t count = 0;

	for (size_t i = 0; i < ring->count; i++)
		if (all || backend_ready(&ring->backends[i], backup))
			entries[count++] = entry_make(ring, &ring->backends[i]);
	qsort(entries, count, sizeof(*entries), entry_compare);
	*ret_count = count;
	return entries;
}

static uint64_t weight_sum(const struct entry *entries, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += entries[i].backend->weight;
	return sum;
}

/* The backend with the greatest remainder that has no extra slot yet. */
static size_t remainder_greatest(const uint64_t *remainders, const bool *served, size_t count)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++)
		if (!served[i] && (best == count || remainders[i] > remainders[best]))
			best = i;
	return best;
}

static void shares_give(struct entry *entries, size_t count, uint32_t size)
{
	uint64_t sum = weight_sum(entries, count);
	uint64_t *remainders = memory(count, sizeof(*remainders));
	bool *served = memory(count, sizeof(*served));
	uint32_t left = size;

	for (size_t i = 0; i < count; i++) {
		uint64_t exact = (uint64_t)size * entries[i].backend->weight;

		entries[i].share = (uint32_t)(exact / sum);
		remainders[i] = exact % sum;
		left -= entries[i].share;
	}
	while (left--) {
		size_t next = remainder_greatest(remainders, served, count);

		entries[next].share++;
		served[next] = true;
	}
	free(remainders);
	free(served);
}

/* Is a's next turn, at the time turn / weight, before b's? */
static bool turn_before(const struct entry *a, const struct entry *b)
{
	return (uint64_t)a->turn * b->backend->weight < (uint64_t)b->turn * a->backend->weight;
}

static struct entry *turn_next(struct entry *entries, size_t count)
{
	struct entry *next = NULL;

	for (struct entry *entry = entries; entry < entries + count; entry++)
		if (entry->turn < entry->share && (!next || turn_before(entry, next)))
			next = entry;
	return next;
}

static void turn_take(struct entry *entry, uint32_t size, uint16_t *owners)
{
	while (owners[entry->wish])
		entry->wish = (entry->wish + entry->skip) % size;
	owners[entry->wish] = entry->backend->id;
	entry->turn++;
}

bool ring_fill(const struct ring *ring, uint16_t *ret_owners)
{
	size_t count;
	struct entry *entries = entries_sorted(ring, false, &count);
	struct entry *next;

	if (count) {
		shares_give(entries, count, ring->size);
		memset(ret_owners, 0, ring->size * sizeof(*ret_owners));
		while ((next = turn_next(entries, count)))
			turn_take(next, ring->size, ret_owners);
	}
	free(entries);
	return count;
}

static void record_write(const struct entry *entry, uint8_t record[16])
{
	bytes_lower_first(record, entry->hash, 8);
	bytes_lower_first(record + 8, entry->backend->weight, 4);
	record[12] = (uint8_t)entry->backend->state;
	record[13] = entry->backend->backup;
}

uint64_t ring_fingerprint(const struct ring *ring)
{
	size_t count;
	struct entry *entries = entries_sorted(ring, true, &count);
	size_t len = 16 + 16 * count;
	uint8_t *message = memory(len, 1);
	uint64_t fingerprint;

	memcpy(message, "mark2", 5);
	message[5] = ring->by_source;
	bytes_lower_first(message + 8, ring->size, 4);
	bytes_lower_first(message + 12, count, 4);
	for (size_t i = 0; i < count; i++)
		record_write(&entries[i], message + 16 + 16 * i);
	fingerprint = siphash13(ring->key, message, len);
	free(message);
	free(entries);
	return fingerprint;
}

/* |slots / size - w / W| / (w / W) = |slots × W - size × w| / (size × w); all fit 64 bits. */
static uint64_t share_error(uint64_t slots, uint64_t size, uint64_t weight, uint64_t sum)
{
	uint64_t is = slots * sum;
	uint64_t exact = size * weight;

	return (is > exact ? is - exact : exact - is) * 1000000 / exact;
}

uint64_t ring_error_ppm(const struct ring *ring, const uint16_t *owners)
{
	size_t count;
	struct entry *entries = entries_sorted(ring, false, &count);
	uint64_t sum = weight_sum(entries, count);
	uint32_t *slots = memory(UINT16_MAX + 1, sizeof(*slots));
	uint64_t worst = 0;

	for (uint32_t i = 0; i < ring->size; i++)
		slots[owners[i]]++;
	for (size_t i = 0; i < count; i++) {
		const struct backend *backend = entries[i].backend;
		uint64_t error = share_error(slots[backend->id], ring->size, backend->weight, sum);

		worst = error > worst ? error : worst;
	}
	free(slots);
	free(entries);
	return worst;
}
