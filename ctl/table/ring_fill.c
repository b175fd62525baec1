// SPDX-License-Identifier: GPL-2.0-only
// Fills a ring: shares of slots, turns in which they are taken, slots (docs/ring.md, "Fill").

#include <errno.h>
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/table/ring.h"

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
