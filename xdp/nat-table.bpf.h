/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of connections of nat and fullnat: looking one up, and taking a place.
 *
 * A place is a number: the block in the upper half, the place in the block in the lower half. The
 * searches have no branches within a bucket. The functions that are rare are global, so that the
 * verifier checks each once. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/nat.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/nat-near.bpf.h"
#include "xdp/order.bpf.h"
#include "xdp/service-maps.bpf.h"

/* The places of a block are a map of their own, so the memory that they take follows the number of
 * blocks, and two generations have the same blocks. */
#define NAT_PLACES_MAP(entry)              \
	__uint(type, BPF_MAP_TYPE_ARRAY);  \
	__uint(map_flags, BPF_F_MMAPABLE); \
	__uint(max_entries, 1);            \
	__uint(key_size, sizeof(__u32));   \
	__uint(value_size, NAT_PLACES * sizeof(entry))

struct nat_places4 {
	NAT_PLACES_MAP(struct nat_entry4);
};

struct nat_places6 {
	NAT_PLACES_MAP(struct nat_entry6);
};

/* By number of the block. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, NAT_BLOCKS);
	__type(key, __u32);
	__array(values, struct nat_places4);
} nat4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, NAT_BLOCKS);
	__type(key, __u32);
	__array(values, struct nat_places6);
} nat6 SEC(".maps");

#define NAT_NOWHERE (~0ull)

static __always_inline __u64 read_word(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

static __always_inline void *nat_places_of(const int family, __u32 block)
{
	void *places = family == 4 ? bpf_map_lookup_elem(&nat4, &block)
				   : bpf_map_lookup_elem(&nat6, &block);
	__u32 zero = 0;

	return places ? bpf_map_lookup_elem(places, &zero) : NULL;
}

/* A bucket, with the following ones: `number` is a multiple of `count`, a constant. NULL: there is
 * no such block. */
static __always_inline void *nat_buckets_at(const int family, __u64 number, const __u32 count)
{
	const __u32 buckets = NAT_PLACES / nat_bucket_size(family);
	__u8 *places = nat_places_of(family, number / buckets);

	return places ? places + BOUND(number, buckets - count) * sizeof(struct nat_bucket4) : NULL;
}

static __always_inline void *nat_bucket_at(const int family, __u64 number)
{
	return nat_buckets_at(family, number, 1);
}

static __always_inline const struct nat_block *nat_block_of(const int family, __u64 place)
{
	return &nat()->block[family == 6][BOUND(place >> NAT_PLACES_LOG2, NAT_BLOCKS)];
}

static __always_inline __u64 nat_now(void)
{
	return SHIFT_RIGHT(now_jiffies(), nat()->shift) & NAT_TIME;
}

/* The cells of nat in a family; those of fullnat follow both. */
static __always_inline const __u64 *nat_cells_of(const int family)
{
	return nat()->cell[0][family == 6];
}

static __always_inline __u64 nat_cell_in(const __u64 *cells, __u32 half)
{
	return read_word(&cells[nat_cell(half)]);
}

static __always_inline __u64 nat_cell_of(const int family, bool fullnat, __u32 half)
{
	return nat_cell_in(nat_cells_of(family) + BOUND(fullnat, 1) * 2 * NAT_CELLS, half);
}

/* ---- one bucket ------------------------------------------------------------------------------ */

/* 0 if the entry of a bucket has this key where `mask` has bits. In IPv4 below 2^63: an end has 12
 * bits. */
static __always_inline __u64 nat_differs(const int family, const void *bucket, int i,
					 const struct nat_key *k, __u64 mask)
{
	const struct nat_entry4 *e4 = bucket;
	const struct nat_entry6 *e6 = bucket;

	if (family == 4)
		return (read_word(&e4[i].last) ^ k->last) & mask;
	return ((read_word(&e6[i].last) ^ k->last) & mask) |
	       (read_word(&e6[i].client[0]) ^ k->client[0]) |
	       (read_word(&e6[i].client[1]) ^ k->client[1]);
}

static __always_inline __u64 *nat_word_in(const int family, void *bucket, __u64 i)
{
	if (family == 4)
		return &((struct nat_bucket4 *)bucket)->at[BOUND(i, NAT_BUCKET4 - 1)].word;
	return &((struct nat_bucket6 *)bucket)->at[BOUND(i, NAT_BUCKET6 - 1)].word;
}

/* The same where the position is a constant: read. */
static __always_inline __u64 nat_read_in(const int family, const void *bucket, const int i)
{
	const struct nat_bucket4 *b4 = bucket;
	const struct nat_bucket6 *b6 = bucket;

	return read_word(family == 4 ? &b4->at[i].word : &b6->at[i].word);
}

/* The word of a place, or NULL. */
static __always_inline __u64 *nat_word_at(const int family, __u64 place)
{
	const __u32 size = nat_bucket_size(family);
	void *bucket = nat_bucket_at(family, place / size);

	return bucket ? nat_word_in(family, bucket, place & (size - 1)) : NULL;
}

#define NAT_HIT 8

/* {NAT_HIT + place in the bucket}, the first of several, or 0. */
static __always_inline __u64 nat_match(const int family, const void *bucket,
				       const struct nat_key *k, __u64 mask)
{
	__u64 found = 0;

#pragma unroll
	for (int i = (int)nat_bucket_size(family) - 1; i >= 0; i--)
		found ^= (found ^ (NAT_HIT + i)) *
			 is_zero64(nat_differs(family, bucket, i, k, mask));
	return found;
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* A bit for each place of the group that has this key and is not free. group: its first bucket. */
static __always_inline __u64 nat_matches(const int family, __u64 group, const struct nat_key *k,
					 __u64 mask)
{
	const int size = (int)nat_bucket_size(family);
	const __u8 *bucket = nat_buckets_at(family, group, NAT_GROUP / size);
	__u64 bits = 0;

	if (!bucket)
		return 0;
	for (int b = 0; b < NAT_GROUP / size; b++, bucket += sizeof(struct nat_bucket4)) {
#pragma unroll
		for (int i = 0; i < size; i++) {
			__u64 taken = nat_is_taken(nat_read_in(family, bucket, i));
			__u64 differs = nat_differs(family, bucket, i, k, mask);
			__u64 hit = family == 4 ? is_zero63(differs) : is_zero64(differs);

			bits |= (hit & taken) << (b * size + i);
		}
	}
	return bits;
}

/* The backend of an answer, or of a new connection that must not clash with another one. */
struct nat_side {
	__u32 addr[4];
	__u32 port_proto; /* nat_port_proto() */
	__u32 not_end;    /* connections with this end do not count; 0: all count */
};

/* A mask for keys: the end does not count. */
#define NAT_WITHOUT_END (~0ull >> (64 - NAT_END_SHIFT))

static __always_inline __u64 nat_keys_differ(const struct nat_key *a, const struct nat_key *b,
					     __u64 mask)
{
	return ((a->last ^ b->last) & mask) | (a->client[0] ^ b->client[0]) |
	       (a->client[1] ^ b->client[1]);
}

/* The port of the backend, and the protocol: nat_port_proto(). */
static __always_inline __u32 nat_backend_port(const struct backend *b, const struct nat_end *end)
{
	__u32 port_proto = end->port_proto;

	return b->port ? nat_port_proto(bpf_htons(b->port), port_proto >> 16) : port_proto;
}

/* A connection at one moment: key and word belong together. */
struct nat_held {
	struct nat_key key;
	__u64 word;
};

/* The connection of a place in a bucket. Another CPU may be giving the place to another connection:
 * first it changes the word, then the key. false: there is no connection at this moment. */
static __always_inline bool nat_hold_in(const int family, const void *bucket, __u64 place,
					struct nat_held *ret)
{
	const struct nat_entry4 *e4 = bucket;
	const struct nat_entry6 *e6 = bucket;
	const __u64 *word;

	e4 += BOUND(place, NAT_BUCKET4 - 1);
	e6 += BOUND(place, NAT_BUCKET6 - 1);
	word = family == 4 ? &e4->word : &e6->word;
	ret->word = read_word(word);
	read_barrier();
	ret->key.last = read_word(family == 4 ? &e4->last : &e6->last);
	if (family == 6) {
		ret->key.client[0] = read_word(&e6->client[0]);
		ret->key.client[1] = read_word(&e6->client[1]);
	}
	read_barrier();
	return nat_is_taken(ret->word) && read_word(word) == ret->word;
}

static __always_inline bool nat_hold(const int family, __u64 place, struct nat_held *ret)
{
	const void *bucket = nat_bucket_at(family, place / nat_bucket_size(family));

	return bucket && nat_hold_in(family, bucket, place, ret);
}

static __always_inline const struct nat_end *nat_end_in(const struct nat_held *h)
{
	return nat_end_at(h->key.last >> NAT_END_SHIFT);
}

/* Is this the backend of the connection? end: the connection's. */
static __always_inline bool nat_is_of_backend(const int family, const struct nat_held *h,
					      const struct nat_end *end,
					      const struct nat_side *from)
{
	const struct backend *b = backend_at(nat_backend(h->word));
	__u64 number = h->key.last >> NAT_END_SHIFT;

	if (!b || (from->not_end && number == from->not_end) ||
	    !same_address(family, b->addr, from->addr))
		return false;
	return nat_backend_port(b, end) == from->port_proto;
}

static __always_inline bool nat_is_with(const int family, const struct nat_held *h,
					const struct nat_side *from)
{
	return nat_is_of_backend(family, h, nat_end_in(h), from);
}

/* The first place of `bits` in a group whose connection has the backend `from`, or any: NULL. */
static __always_inline __u64 nat_pick(const int family, __u64 group, __u64 bits,
				      const struct nat_side *from)
{
	__u64 first = group * nat_bucket_size(family);

	for (int i = 0; i < NAT_GROUP && bits; i++) {
		__u64 at = first + __builtin_popcountll(bits ^ (bits - 1)) - 1;
		struct nat_held h;

		if (!from || (nat_hold(family, at, &h) && nat_is_with(family, &h, from)))
			return at;
		bits &= bits - 1;
	}
	return NAT_NOWHERE;
}

__noinline __u64 nat_in_group4(__u64 group, const struct nat_key *k, const struct nat_side *from)
{
	const __u64 mask = from ? NAT_WITHOUT_END : ~0ull;

	return k ? nat_pick(4, group, nat_matches(4, group, k, mask), from) : NAT_NOWHERE;
}

__noinline __u64 nat_in_group6(__u64 group, const struct nat_key *k, const struct nat_side *from)
{
	const __u64 mask = from ? NAT_WITHOUT_END : ~0ull;

	return k ? nat_pick(6, group, nat_matches(6, group, k, mask), from) : NAT_NOWHERE;
}

/* In the group of a half in the block of the lowest byte of a cell. */
static __always_inline __u64 nat_in_block(const int family, __u64 cell, __u32 half,
					  const struct nat_key *k, const struct nat_side *from)
{
	__u64 group;

	if (!(cell & 0xff))
		return NAT_NOWHERE;
	group = nat_group(family, (cell & 0xff) - 1, half);
	return family == 4 ? nat_in_group4(group, k, from) : nat_in_group6(group, k, from);
}

/* In every place that the connection can have: block after block, the newest first. */
static __always_inline __u64 nat_search(const int family, __u64 hash, bool fullnat,
					const struct nat_key *k, const struct nat_side *from)
{
	__u64 first = nat_cell_of(family, fullnat, hash), place;
	__u64 second = nat_cell_of(family, fullnat, hash >> 32);

	for (int i = 0; i < NAT_DEPTH && (first | second); i++) {
		place = nat_in_block(family, first, hash, k, from);
		if (place != NAT_NOWHERE)
			return place;
		place = nat_in_block(family, second, hash >> 32, k, from);
		if (place != NAT_NOWHERE)
			return place;
		first >>= 8;
		second >>= 8;
	}
	return NAT_NOWHERE;
}

/* fullnat: 0 or 1. from: NULL: the end counts, with any backend. */
__noinline __u64 nat_search4(__u64 hash, __u32 fullnat, const struct nat_key *k,
			     const struct nat_side *from)
{
	return k ? nat_search(4, hash, fullnat, k, from) : NAT_NOWHERE;
}

__noinline __u64 nat_search6(__u64 hash, __u32 fullnat, const struct nat_key *k,
			     const struct nat_side *from)
{
	return k ? nat_search(6, hash, fullnat, k, from) : NAT_NOWHERE;
}

static __always_inline __u64 nat_elsewhere(const int family, __u64 hash, bool fullnat,
					   const struct nat_key *k, const struct nat_side *from)
{
	return family == 4 ? nat_search4(hash, fullnat, k, from)
			   : nat_search6(hash, fullnat, k, from);
}

/* The place in the bucket that the connection has first, in the newest block, or NAT_NOWHERE. *ret:
 * the connection. */
static __always_inline __u64 nat_in_own(const int family, __u64 hash, bool fullnat,
					const struct nat_key *k, __u64 mask, struct nat_held *ret)
{
	__u64 block = nat_cell_of(family, fullnat, hash) & 0xff, number, found;
	void *bucket;

	if (unlikely(!block))
		return NAT_NOWHERE;
	number = nat_group(family, block - 1, hash) + nat_own_bucket(family, hash);
	bucket = nat_bucket_at(family, number);
	if (unlikely(!bucket) || unlikely(!(found = nat_match(family, bucket, k, mask))))
		return NAT_NOWHERE;
	if (unlikely(!nat_hold_in(family, bucket, found, ret)) ||
	    unlikely(nat_keys_differ(&ret->key, k, mask)))
		return NAT_NOWHERE;
	return number * nat_bucket_size(family) + (found & (NAT_HIT - 1));
}

/* ---- claim ----------------------------------------------------------------------------------- */

/* {worth, place that comes first} of the best place of a bucket. */
static __always_inline __u64 nat_best(const int family, void *bucket, __u64 time, __u64 half_open)
{
	const int size = (int)nat_bucket_size(family);
	const __u64 lives = nat()->lives;
	__u64 best = 0;

	/* Unrolled, it would take 160 bytes of a stack that a chain of five calls shares. */
#pragma clang loop unroll(disable)
	for (int i = 0; i < size; i++) {
		__u64 word = nat_read_in(family, bucket, i);
		__u64 rank = nat_worth(word, time, lives, half_open) << 2 | (size - 1 - i);

		best ^= (best ^ rank) * is_less(best, rank);
	}
	return best;
}

static __always_inline void nat_write_key(const int family, void *bucket, __u64 i,
					  const struct nat_key *k)
{
	struct nat_entry4 *e4;
	struct nat_entry6 *e6;

	if (family == 4) {
		e4 = &((struct nat_bucket4 *)bucket)->at[BOUND(i, NAT_BUCKET4 - 1)];
		__sync_lock_test_and_set(&e4->last, k->last);
		return;
	}
	e6 = &((struct nat_bucket6 *)bucket)->at[BOUND(i, NAT_BUCKET6 - 1)];
	*(volatile __u64 *)&e6->client[0] = k->client[0];
	*(volatile __u64 *)&e6->client[1] = k->client[1];
	__sync_lock_test_and_set(&e6->last, k->last);
}

/* The lowest bit is of NAT_DISTURBED only. */
enum { NAT_TAKEN = -2, NAT_DISTURBED = -1 };

/* Takes the best place of a bucket: its position; NAT_TAKEN: no place gives way; NAT_DISTURBED. */
static __always_inline __s64 nat_take(const int family, __u64 number, const struct nat_key *k,
				      __u64 word, __u64 half_open)
{
	const __u32 size = nat_bucket_size(family);
	void *bucket = nat_bucket_at(family, number);
	__u64 best, old, at, *place;

	if (!bucket)
		return NAT_TAKEN;
	best = nat_best(family, bucket, word & NAT_TIME, half_open);
	if (best < 4)
		return NAT_TAKEN;
	at = size - 1 - BOUND(best, size - 1);
	place = nat_word_in(family, bucket, at);
	old = read_word(place);
	if (!nat_worth(old, word & NAT_TIME, nat()->lives, half_open) ||
	    __sync_val_compare_and_swap(place, old, word | NAT_CLAIMED) != old)
		return NAT_DISTURBED;
	nat_write_key(family, bucket, at, k);
	__sync_lock_test_and_set(place, word);
	return number * size + at;
}

/* half_open: 1: a connection that is opening gives way. */
__noinline __s64 nat_take4(__u64 number, const struct nat_key *k, __u64 word, __u32 half_open)
{
	return k ? nat_take(4, number, k, word, half_open & 1) : NAT_TAKEN;
}

__noinline __s64 nat_take6(__u64 number, const struct nat_key *k, __u64 word, __u32 half_open)
{
	return k ? nat_take(6, number, k, word, half_open & 1) : NAT_TAKEN;
}

/* How many places of a group are taken by connections that live. */
static __always_inline __u32 nat_living(const int family, __u64 group, __u64 time)
{
	const int size = (int)nat_bucket_size(family);
	const __u8 *bucket = nat_buckets_at(family, group, NAT_GROUP / size);
	const __u64 lives = nat()->lives;
	__u32 n = 0;

	if (!bucket)
		return NAT_GROUP;
	for (int b = 0; b < NAT_GROUP / size; b++, bucket += sizeof(struct nat_bucket4)) {
#pragma unroll
		for (int i = 0; i < size; i++)
			n += is_less(nat_worth(nat_read_in(family, bucket, i), time, lives, 0), 1);
	}
	return n;
}

__noinline __u32 nat_living4(__u64 group, __u64 time)
{
	return nat_living(4, group, time);
}

__noinline __u32 nat_living6(__u64 group, __u64 time)
{
	return nat_living(6, group, time);
}

/* Where a connection begins to look for a place: the halves in their order. */
struct nat_choice {
	__u64 group[2];
	__u64 own[2]; /* bucket of the group */
};

static __always_inline __u32 nat_count_living(const int family, __u64 group, __u64 time)
{
	return family == 4 ? nat_living4(group, time) : nat_living6(group, time);
}

/* false: there is no block. */
static __always_inline bool nat_choose(const int family, __u64 hash, bool fullnat, __u64 time,
				       struct nat_choice *ret)
{
	__u64 first = nat_cell_of(family, fullnat, hash) & 0xff, a, b;
	__u64 second = nat_cell_of(family, fullnat, hash >> 32) & 0xff;
	__u32 n, swap;

	if (!first || !second)
		return false;
	a = nat_group(family, first - 1, hash);
	b = nat_group(family, second - 1, hash >> 32);
	n = nat_count_living(family, a, time);
	swap = n >= NAT_ENOUGH && nat_count_living(family, b, time) < n;
	ret->group[0] = swap ? b : a;
	ret->group[1] = swap ? a : b;
	ret->own[0] = nat_own_bucket(family, swap ? hash >> 32 : hash);
	ret->own[1] = nat_own_bucket(family, swap ? hash : hash >> 32);
	return true;
}

/* Bucket n of all that a connection can take a place in, its own first. */
static __always_inline __u64 nat_nth(const int family, const struct nat_choice *c, __u32 n)
{
	const __u32 buckets = NAT_GROUP / nat_bucket_size(family);
	__u32 which = n >= buckets;

	return (which ? c->group[1] : c->group[0]) +
	       ((which ? c->own[1] : c->own[0]) ^ (n & (buckets - 1)));
}

/* A place that is free or has expired, else one of a connection that is opening. If another CPU
 * takes the best place of a bucket meanwhile, the next bucket is tried. The place, or NAT_NO. */
static __always_inline __u64 nat_take_any(const int family, const struct nat_choice *c,
					  const struct nat_key *k, __u64 word)
{
	const __u32 buckets = 2 * NAT_GROUP / nat_bucket_size(family);
	__u64 disturbed = 0;

	for (__u32 n = 0; n < 2 * buckets; n++) {
		__u64 number = nat_nth(family, c, n & (buckets - 1));
		__s64 at = family == 4 ? nat_take4(number, k, word, n >= buckets)
				       : nat_take6(number, k, word, n >= buckets);

		if (at >= 0)
			return at;
		disturbed |= at;
	}
	return NAT_NO(disturbed & 1 ? REASON_DROP_NAT_BUSY : REASON_DROP_NAT_FULL);
}

__noinline __u64 nat_claim4(__u64 hash, __u32 fullnat, const struct nat_key *k, __u64 word)
{
	struct nat_choice c = {};

	if (!k || !nat_choose(4, hash, fullnat, word & NAT_TIME, &c))
		return NAT_NO(REASON_DROP_NAT_FULL);
	return nat_take_any(4, &c, k, word);
}

__noinline __u64 nat_claim6(__u64 hash, __u32 fullnat, const struct nat_key *k, __u64 word)
{
	struct nat_choice c = {};

	if (!k || !nat_choose(6, hash, fullnat, word & NAT_TIME, &c))
		return NAT_NO(REASON_DROP_NAT_FULL);
	return nat_take_any(6, &c, k, word);
}
