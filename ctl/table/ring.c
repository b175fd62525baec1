// SPDX-License-Identifier: GPL-2.0-only
// Rings: the order of backends, the slots, and questions about both (keys, active backends, errors
// of shares, fingerprints).
#include "ctl/table/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define MESSAGE 24

static const char word[5] = {'r', 'i', 'n', 'g', '0' + RING_VERSION};

static void message(const struct ring_backend *b, uint8_t to[MESSAGE])
{
	memset(to, 0, MESSAGE);
	memcpy(to, word, sizeof(word));
	to[5] = b->addr.family;
	to[6] = (uint8_t)(b->port >> 8);
	to[7] = (uint8_t)b->port;
	memcpy(to + 8, b->addr.bytes, sizeof(b->addr.bytes));
}

// The message decides between equal hashes, so that the order never depends on the one given.
static int compare(const void *a, const void *b)
{
	const struct ring_entry *x = a, *y = b;
	uint8_t left[MESSAGE], right[MESSAGE];

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	message(x->backend, left);
	message(y->backend, right);
	return memcmp(left, right, MESSAGE);
}

bool ring_size_ok(uint32_t size)
{
	return size >= POLICY_RING_MIN && size <= POLICY_RING_MAX && num_is_prime(size);
}

static bool backend_ok(const struct ring_backend *b)
{
	return b->id != BACKEND_NONE && b->id < SERVICE_BACKENDS && b->weight <= POLICY_WEIGHT_MAX;
}

// The n backends in order; to be freed. -EINVAL: the size is no ring's, a backend is out of range,
// too many, or one is there twice.
static int ring_order(const struct hash_key *key, const struct ring_backend *b, size_t n,
		      uint32_t size, struct ring_entry **ret)
{
	CLEANUP_FREE struct ring_entry *order = NULL;

	if (!ring_size_ok(size) || n > POLICY_BACKENDS)
		return -EINVAL;
	order = mem_zalloc(n, sizeof(*order));
	for (size_t i = 0; i < n; i++) {
		uint8_t text[MESSAGE];

		if (!backend_ok(&b[i]))
			return -EINVAL;
		message(&b[i], text);
		order[i].hash = hash_bytes(key, text, MESSAGE, HASH_ROUNDS, HASH_ROUNDS_FINAL);
		order[i].backend = &b[i];
	}
	qsort(order, n, sizeof(*order), compare);
	for (size_t i = 1; i < n; i++)
		if (!compare(&order[i - 1], &order[i]))
			return -EINVAL;
	*ret = TAKE_PTR(order);
	return 0;
}

// A backend with weight, in the order of the array.
struct share {
	uint64_t hash;
	uint32_t weight;
	uint32_t slots; // how many it gets
	uint32_t rest;  // of the division
	uint32_t at;    // the next slot that it tries
	uint32_t skip;
	uint32_t unskip; // skip * unskip = 1 modulo the size of the ring, which is prime
	uint16_t id;
};

struct shares {
	struct share *at;
	size_t n;
	uint64_t sum; // of the weights
};

static void take_weighted(struct shares *s, const struct ring_entry *order, size_t n, uint32_t size)
{
	for (size_t i = 0; i < n; i++) {
		const struct ring_backend *b = order[i].backend;
		uint64_t hash = order[i].hash;

		if (!b->weight)
			continue;
		s->at[s->n++] = (struct share){
			.hash = hash,
			.weight = b->weight,
			.at = hash_scale((uint32_t)hash, size),
			.skip = hash_scale((uint32_t)(hash >> 32), size - 1) + 1,
			.id = b->id,
		};
		s->sum += b->weight;
	}
}

// ---- shares -------------------------------------------------------------------------------------

// Greatest rest first; between equal ones the position in the order.
static int by_rest(const void *a, const void *b)
{
	const struct share *x = *(struct share *const *)a, *y = *(struct share *const *)b;

	if (x->rest != y->rest)
		return x->rest > y->rest ? -1 : 1;
	return x < y ? -1 : x > y;
}

// The method of largest remainders: no share is off by a slot. Among equal weights the first in the
// order get one more, so that a new backend changes few of the other shares.
static void divide(struct shares *s, uint32_t size)
{
	CLEANUP_FREE struct share **by = mem_zalloc(s->n, sizeof(struct share *));
	uint32_t left = size;

	for (size_t i = 0; i < s->n; i++) {
		uint64_t exact = (uint64_t)size * s->at[i].weight;

		s->at[i].slots = (uint32_t)(exact / s->sum);
		s->at[i].rest = (uint32_t)(exact % s->sum);
		left -= s->at[i].slots;
		by[i] = &s->at[i];
	}
	qsort(by, s->n, sizeof(struct share *), by_rest);
	for (uint32_t i = 0; i < left; i++)
		by[i]->slots++;
}

// ---- turns --------------------------------------------------------------------------------------

// A turn is its time, then the position in the order: k / weight with 32 binary places keeps any
// two different fractions apart, as weights are below 2^16.
#define TURN_SHARE_BITS 10
_Static_assert(POLICY_BACKENDS <= 1u << TURN_SHARE_BITS, "a share has a place in a turn");
_Static_assert(POLICY_RING_MAX < 1u << 17, "17 + 32 bits of time are left");

static void make_turns(const struct shares *s, uint64_t *turns)
{
	for (size_t i = 0; i < s->n; i++)
		for (uint64_t k = 0; k < s->at[i].slots; k++)
			*turns++ = (k << 32) / s->at[i].weight << TURN_SHARE_BITS | i;
}

static bool have_equal_weights(const struct shares *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->at[i].weight != s->at[0].weight)
			return false;
	return true;
}

// The order that sorting gives where all weights are equal: round by round, each in the order of
// the shares.
static void make_equal_turns(const struct shares *s, uint32_t size, uint64_t *turns)
{
	uint64_t *end = turns + size;

	for (uint32_t k = 0; turns < end; k++)
		for (size_t i = 0; i < s->n; i++)
			if (k < s->at[i].slots)
				*turns++ = i;
}

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

// Stable sort by one digit; false if it is the same everywhere.
static bool sort_digit(const uint64_t *from, uint64_t *to, size_t n, unsigned shift)
{
	uint32_t start[DIGITS] = {0};
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		start[from[i] >> shift & (DIGITS - 1)]++;
	if (start[from[0] >> shift & (DIGITS - 1)] == n)
		return false;
	for (size_t i = 0; i < DIGITS; i++) {
		uint32_t count = start[i];

		start[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[start[from[i] >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

// Turns were made in the order of shares, and stay so where the time is the same.
static void sort_turns(uint64_t **turns, uint64_t **spare, size_t n)
{
	for (unsigned shift = TURN_SHARE_BITS; shift < 64; shift += DIGIT_BITS) {
		uint64_t *from = *turns;

		if (!sort_digit(from, *spare, n, shift))
			continue;
		*turns = *spare;
		*spare = from;
	}
}

// ---- slots --------------------------------------------------------------------------------------

static uint32_t first_free(struct share *s, const uint64_t *taken, uint32_t size)
{
	uint32_t at = s->at, slot;

	do {
		slot = at;
		at += s->skip;
		at -= at >= size ? size : 0;
	} while (taken[slot / 64] >> slot % 64 & 1);
	s->at = at;
	return slot;
}

// By the extended algorithm of Euclid (Knuth, The Art of Computer Programming, volume 2, 4.5.2).
static uint32_t inverse(uint32_t of, uint32_t size)
{
	int64_t a = 1, b = 0;
	uint32_t x = of, y = size;

	while (x) {
		uint32_t times = y / x, rest = y % x;
		int64_t next = b - a * times;

		y = x;
		x = rest;
		b = a;
		a = next;
	}
	return (uint32_t)(b < 0 ? b + size : b);
}

// With few free slots nearly all tries meet a slot that is taken: half of all tries are for the
// last hundred. The number of tries up to each free slot is therefore computed.
#define FEW 96

struct free_slots {
	uint32_t slot[FEW];
	uint32_t n;
};

static void find_free(const uint64_t *taken, uint32_t size, struct free_slots *ret)
{
	ret->n = 0;
	for (uint32_t slot = 0; slot < size; slot++)
		if (!(taken[slot / 64] >> slot % 64 & 1))
			ret->slot[ret->n++] = slot;
}

// As first_free().
static uint32_t nearest_free(struct share *s, struct free_slots *f, uint32_t size)
{
	uint32_t best = 0, least = size, slot;

	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t ahead = f->slot[i] - s->at + (f->slot[i] < s->at ? size : 0);
		uint32_t tries = (uint32_t)((uint64_t)ahead * s->unskip % size);

		if (tries < least) {
			least = tries;
			best = i;
		}
	}
	slot = f->slot[best];
	f->slot[best] = f->slot[--f->n];
	s->at = slot + s->skip;
	s->at -= s->at >= size ? size : 0;
	return slot;
}

static struct share *share_of(const struct shares *s, uint64_t turn)
{
	return &s->at[turn & ((1u << TURN_SHARE_BITS) - 1)];
}

static void take_turns(struct shares *s, const uint64_t *turns, uint32_t size, uint16_t *ret)
{
	CLEANUP_FREE uint64_t *taken = mem_zalloc(size / 64 + 1, sizeof(*taken));
	uint32_t few = size < FEW ? size : FEW;
	struct free_slots f;

	for (uint32_t i = 0; i < size - few; i++) {
		struct share *share = share_of(s, turns[i]);
		uint32_t slot = first_free(share, taken, size);

		taken[slot / 64] |= 1ull << slot % 64;
		ret[slot] = share->id;
	}
	for (size_t i = 0; i < s->n; i++)
		s->at[i].unskip = inverse(s->at[i].skip, size);
	find_free(taken, size, &f);
	for (uint32_t i = size - few; i < size; i++) {
		struct share *share = share_of(s, turns[i]);

		ret[nearest_free(share, &f, size)] = share->id;
	}
}

int ring_fill(const struct hash_key *key, const struct ring_backend *b, size_t n, uint32_t size,
	      uint16_t *ret)
{
	CLEANUP_FREE struct ring_entry *order = NULL;
	CLEANUP_FREE struct share *shares = NULL;
	CLEANUP_FREE uint64_t *turns = NULL, *spare = NULL;
	struct shares s = {0};
	int code = ring_order(key, b, n, size, &order);

	if (code < 0)
		return code;
	s.at = shares = mem_zalloc(n, sizeof(*shares));
	take_weighted(&s, order, n, size);
	if (!s.n)
		return -ENOENT;
	divide(&s, size);
	turns = mem_zalloc(size, sizeof(*turns));
	if (have_equal_weights(&s)) {
		make_equal_turns(&s, size, turns);
	} else {
		spare = mem_zalloc(size, sizeof(*spare));
		make_turns(&s, turns);
		sort_turns(&turns, &spare, size);
	}
	take_turns(&s, turns, size, ret);
	return 0;
}

static const char seed_word[5] = {'s', 'e', 'e', 'd', '0' + RING_VERSION};
static const char flow_word[5] = {'f', 'l', 'o', 'w', '0' + RING_VERSION};
static const char mark_word[5] = {'m', 'a', 'r', 'k', '0' + RING_VERSION};

static uint64_t hash13(const struct hash_key *key, const void *data, size_t len)
{
	return hash_bytes(key, data, len, HASH_ROUNDS, HASH_ROUNDS_FINAL);
}

struct hash_key ring_key(const char *seed, size_t len)
{
	static const struct hash_key zero;
	CLEANUP_FREE char *message = mem_zalloc(len + 6, 1);
	struct hash_key key;

	memcpy(message, seed_word, sizeof(seed_word));
	memcpy(message + 6, seed, len);
	for (int i = 0; i < 2; i++) {
		message[5] = (char)i;
		key.word[i] = hash13(&zero, message, len + 6);
	}
	return key;
}

struct flow_key ring_flow_key(const struct hash_key *key)
{
	char message[6];
	struct flow_key flow;

	memcpy(message, flow_word, sizeof(flow_word));
	for (int i = 0; i < FLOW_WORDS; i++) {
		message[5] = (char)i;
		flow.word[i] = hash13(key, message, sizeof(message));
	}
	for (int i = 0; i < 2; i++) {
		message[5] = (char)(FLOW_WORDS + i);
		flow.mix[i] = hash13(key, message, sizeof(message)) | 1;
	}
	return flow;
}

// ---- who counts ---------------------------------------------------------------------------------

static bool counts(const struct ring_backend *b, bool backup)
{
	return b->state == BACKEND_UP && b->weight && b->backup == backup;
}

static size_t count(const struct ring_backend *b, size_t n, bool backup)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += counts(&b[i], backup);
	return found;
}

size_t ring_elect(const struct ring_backend *b, size_t n, struct ring_backend *ret)
{
	bool backup = !count(b, n, false);
	size_t elected = count(b, n, backup);

	for (size_t i = 0; i < n; i++) {
		ret[i] = b[i];
		if (!counts(&b[i], backup))
			ret[i].weight = 0;
	}
	return elected;
}

// ---- shares -------------------------------------------------------------------------------------

uint64_t ring_share_error(const struct ring_backend *b, size_t n, uint32_t size,
			  const uint16_t *owners, size_t *ret_worst)
{
	CLEANUP_FREE uint32_t *slots = mem_zalloc(SERVICE_BACKENDS, sizeof(*slots));
	uint64_t sum = 0, worst = 0;
	size_t who = 0;

	for (uint32_t i = 0; i < size; i++)
		slots[owners[i] & SLOT_ID]++;
	for (size_t i = 0; i < n; i++)
		sum += b[i].weight;
	for (size_t i = 0; i < n; i++) {
		uint64_t is = slots[b[i].id & SLOT_ID] * sum;
		uint64_t wanted = (uint64_t)size * b[i].weight;
		uint64_t off = is > wanted ? is - wanted : wanted - is; // below 2^43

		if (!b[i].weight)
			continue;
		off = (off * 1000000 + wanted - 1) / wanted;
		if (off > worst) {
			worst = off;
			who = i;
		}
	}
	if (ret_worst)
		*ret_worst = who;
	return worst;
}

// ---- fingerprint --------------------------------------------------------------------------------

static void put_le(uint8_t *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

int ring_fingerprint(const struct hash_key *key, enum service_hash hash, uint32_t size,
		     const struct ring_backend *b, size_t n, uint64_t *ret)
{
	CLEANUP_FREE struct ring_entry *order = NULL;
	CLEANUP_FREE uint8_t *message = NULL;
	int code = ring_order(key, b, n, size, &order);

	if (code < 0)
		return code;
	message = mem_zalloc(n + 1, 16);
	memcpy(message, mark_word, sizeof(mark_word));
	message[5] = (uint8_t)hash;
	put_le(message + 8, size, 4);
	put_le(message + 12, n, 4);
	for (size_t i = 0; i < n; i++) {
		uint8_t *to = message + 16 * (i + 1);

		put_le(to, order[i].hash, 8);
		put_le(to + 8, order[i].backend->weight, 4);
		to[12] = order[i].backend->state;
		to[13] = order[i].backend->backup;
	}
	*ret = hash13(key, message, 16 * (n + 1));
	return 0;
}
