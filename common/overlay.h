/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of the overlay: the entries of `weir block` and `weir allow`.
 *
 * An entry is a prefix and a kind. A change of any size is atomic: a command stages the whole
 * change for the next epoch, and commits it with one 8-byte store into knobs.epoch. Times are
 * jiffies64: 0 is absent, ~0 is permanent.
 *
 * The epoch begins with a random number and only grows. With E in knobs.epoch, all that is staged
 * has the mark E + 1, and nothing has a later one. So a commit may store any later epoch that is
 * less than 2^17 ahead: a meta has 18 bits of it. A frame of the journal has at most the epoch E +
 * 1. A commit that is in the journal stores E + 1; a commit that is not stores E + 2, which no
 * frame has.
 *
 * A host is in one of the two buckets of 64 bytes that a keyed hash of its address selects. One
 * word, its meta, has the kind of an entry and the epoch from which it is active, and changes with
 * one store. A shard is one value, of elements of equal size: buckets, big counters, and the small
 * counters of each CPU below meta.cpus: the CPUs that were online when the instance was made, since
 * the kernel requires all shards to have one size. Packets on other CPUs count in the big counters.
 * The lowest bits of the hash, as many as knobs.shards has, are the number of the shard: one store
 * doubles the room, and moved entries keep their bucket and slot. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

enum overlay_kind {
	OVERLAY_BLOCK_FROM,
	OVERLAY_ALLOW_FROM,
	OVERLAY_BLOCK_TO,
	OVERLAY_ALLOW_TO,
	OVERLAY_PACKET_KINDS, /* the others concern calls of this host's processes */
	/* connect() and sendmsg() to the address (xdp/outgoing.bpf.c). A block ends the call with
	 * EPERM, ECONNREFUSED or EHOSTUNREACH, in the network namespace of the instance, or in
	 * all. */
	OVERLAY_ALLOW_OUT = OVERLAY_PACKET_KINDS,
	OVERLAY_BLOCK_OUT,
	OVERLAY_BLOCK_OUT_REFUSED,
	OVERLAY_BLOCK_OUT_UNREACHABLE,
	OVERLAY_BLOCK_OUT_ALL,
	OVERLAY_BLOCK_OUT_ALL_REFUSED,
	OVERLAY_BLOCK_OUT_ALL_UNREACHABLE,
	OVERLAY_KINDS,
};

#define OVERLAY_FOREVER (~0ull)

struct overlay_hits {
	__u64 packets;
	__u64 bytes; /* IP length */
};

/* ---- hosts ---- */

/* Of a slot's meta. */
#define OVERLAY_META_KINDS 15u       /* 1 << kind; 0: no entry */
#define OVERLAY_META_TIMED (1u << 4) /* it ends: its expiry is in the shard's times */
#define OVERLAY_META_STAGED \
	(1u << 5) /* it changes at the epoch in the upper bits: it becomes active, */
#define OVERLAY_META_ENDS (1u << 6) /* or ends, */
#define OVERLAY_META_SIDE \
	(1u << 7) /* or, if timed, has its expiry on the other side of the times then */
#define OVERLAY_META_PAIRED (1u << 8) /* the address may have a slot of the other verdict too */
#define OVERLAY_META_DEAD   (1u << 9) /* was an entry: packets may still count here */
/* Is somewhere else now, and its counters here are to be added there; beside a kind: its copy is
 * there, but packets still find it here. */
#define OVERLAY_META_MOVED (1u << 10)
#define OVERLAY_META_WAS   11 /* and its kind was that */
#define OVERLAY_META_MORE \
	(1u << 13) /* in the first slot: addresses of this bucket may be in their second bucket */
#define OVERLAY_META_EPOCH 14 /* the lowest bits of the epoch */

/* The kinds of one direction, and of one verdict. */
#define OVERLAY_KINDS_FROM  (1u << OVERLAY_BLOCK_FROM | 1u << OVERLAY_ALLOW_FROM)
#define OVERLAY_KINDS_TO    (1u << OVERLAY_BLOCK_TO | 1u << OVERLAY_ALLOW_TO)
#define OVERLAY_KINDS_ALLOW (1u << OVERLAY_ALLOW_FROM | 1u << OVERLAY_ALLOW_TO)

#define OVERLAY_LINES   4096 /* of a shard */
#define OVERLAY_ELEMENT (64 * OVERLAY_LINES)
#define OVERLAY_SHARDS  512 /* at most, of each family; a power of two */

/* IPv4: the address in network order in the lower half, the meta in the upper half of a word. */
#define OVERLAY_LINE4 8
struct overlay_line4 {
	__u64 slot[OVERLAY_LINE4];
};
_Static_assert(sizeof(struct overlay_line4) == 64, "layout");

/* IPv6: the two halves of the address in host order. A key is written while its meta has no kind,
 * and stays until no packet can read the meta that it had. */
#define OVERLAY_LINE6 3
struct overlay_line6 {
	__u64 key[OVERLAY_LINE6][2];
	__u32 meta[OVERLAY_LINE6];
	__u32 line; /* OVERLAY_META_MORE */
};
_Static_assert(sizeof(struct overlay_line6) == 64, "layout");

struct overlay_lines4 {
	struct overlay_line4 line[OVERLAY_LINES];
};
struct overlay_lines6 {
	struct overlay_line6 line[OVERLAY_LINES];
};

/* Slots are numbered by bucket, with room for four in a bucket of IPv6. Counters and times are
 * words in that order: an element has the words of a shard of IPv4, or twice the words of a shard
 * of IPv6. */
#define OVERLAY_SLOTS4_LOG2 15
#define OVERLAY_SLOTS6_LOG2 14
#define OVERLAY_WORDS       (OVERLAY_ELEMENT / 8)
_Static_assert(1 << OVERLAY_SLOTS4_LOG2 == 8 * OVERLAY_LINES, "layout");
_Static_assert(1 << OVERLAY_SLOTS6_LOG2 == 4 * OVERLAY_LINES, "layout");
_Static_assert(1 << OVERLAY_SLOTS4_LOG2 == OVERLAY_WORDS, "layout");

struct overlay_words {
	__u64 word[OVERLAY_WORDS];
};

/* Words of a shard after its buckets: packets, bytes, then the small counters of each CPU below
 * meta.cpus. */
enum overlay_region {
	OVERLAY_PACKETS,
	OVERLAY_BYTES,
	OVERLAY_CPUS,
};

/* The start of the words of a region, as a number of words from the first element after the
 * buckets. */
static inline __u32 overlay_region4(__u32 region)
{
	return region << OVERLAY_SLOTS4_LOG2;
}

static inline __u32 overlay_region6(__u32 region)
{
	return region << OVERLAY_SLOTS6_LOG2;
}

/* Elements of a shard, and of its times (one region for each side). */
#define OVERLAY_ELEMENTS4(cpus) (1 + OVERLAY_CPUS + (cpus))
#define OVERLAY_ELEMENTS6(cpus) (1 + (OVERLAY_CPUS + (cpus) + 1) / 2)
#define OVERLAY_BYTES4(cpus)    (OVERLAY_ELEMENT * OVERLAY_ELEMENTS4(cpus))
#define OVERLAY_BYTES6(cpus)    (OVERLAY_ELEMENT * OVERLAY_ELEMENTS6(cpus))
#define OVERLAY_TIMES4          2
#define OVERLAY_TIMES6          1

/* A small counter: last heard 28 bits, in units of 64 jiffies; packets 10; bytes 26. At 1023
 * packets it is added to the big counters: the bytes do not overflow before. A packet that is
 * longer than IP allows is counted there. */
#define OVERLAY_SMALL_BYTES   26
#define OVERLAY_SMALL_PACKETS 10
#define OVERLAY_SMALL_HEARD   (OVERLAY_SMALL_BYTES + OVERLAY_SMALL_PACKETS)
#define OVERLAY_SMALL_FULL    ((1u << OVERLAY_SMALL_PACKETS) - 1)
#define OVERLAY_SMALL_LENGTH  65575 /* length of IPv6 without a jumbo option */
#define OVERLAY_HEARD_UNIT    6     /* log2 */
_Static_assert((__u64)OVERLAY_SMALL_FULL *OVERLAY_SMALL_LENGTH < 1 << OVERLAY_SMALL_BYTES,
	       "a small counter overflows");

static inline __u64 overlay_mix(__u64 hash, __u64 key)
{
	hash = (hash ^ hash >> 32) * (key | 1);
	return hash ^ hash >> 29;
}

/* The lowest bits are the shard, the highest the first bucket, the next ones the distance to the
 * second bucket. */
static inline __u64 overlay_hash4(__u32 addr_be, __u64 seed)
{
	return overlay_mix((addr_be ^ (__u32)seed) * 0x9e3779b97f4a7c15ull, seed >> 16) *
	       0xd6e8feb86659fd93ull;
}

static inline __u64 overlay_hash6(__u64 high, __u64 low, __u64 seed)
{
	return overlay_mix(overlay_mix(high ^ seed, 0x9e3779b97f4a7c15ull) + low, seed >> 16) *
	       0xd6e8feb86659fd93ull;
}

static inline __u32 overlay_first(__u64 hash)
{
	return (__u32)(hash >> 52);
}

static inline __u32 overlay_second(__u64 hash)
{
	return (__u32)(hash >> 52 ^ (hash >> 40 | 1)) & (OVERLAY_LINES - 1);
}

/* Has the epoch of the staged slot been reached? Both are near each other, so the higher bits do
 * not matter. */
static inline bool overlay_committed(__u32 meta, __u64 epoch)
{
	__u32 ahead = ((__u32)epoch << OVERLAY_META_EPOCH) - (meta & ~0u << OVERLAY_META_EPOCH);

	return meta & OVERLAY_META_STAGED && !(ahead >> 31);
}

/* ---- prefixes ---- */

/* LPM keys. The kind is a part of the key that is always matched whole, so that one kind never
 * hides another. prefixlen counts the 32 bits of the kind too. */
struct overlay_net4_key {
	__u32 prefixlen;
	__u32 kind;
	__u8 addr[4];
};
_Static_assert(sizeof(struct overlay_net4_key) == 12, "layout");

struct overlay_net6_key {
	__u32 prefixlen;
	__u32 kind;
	__u8 addr[16];
	__u32 pad; /* no prefix reaches it: it aligns the value (xdp/lpm.bpf.h) */
};
_Static_assert(sizeof(struct overlay_net6_key) == 28, "layout");

#define OVERLAY_NET_KIND_BITS 32

/* Outgoing calls have tables of the same form, out4 and out6, for prefixes and hosts. */
static inline bool overlay_is_out(__u32 kind)
{
	return kind >= OVERLAY_PACKET_KINDS;
}

static inline bool overlay_is_allow(__u32 kind)
{
	return kind == OVERLAY_ALLOW_FROM || kind == OVERLAY_ALLOW_TO || kind == OVERLAY_ALLOW_OUT;
}

/* A longest-prefix look-up finds one entry only, and an entry that has expired or waits for its
 * epoch would hide a wider active one. So `now` and `next` hold the latest expiry of the entry and
 * of every wider prefix of its kind; `own_*` belongs only to the entry itself. `next` applies from
 * the epoch on. */
struct overlay_net {
	__u64 now;
	__u64 epoch; /* 0: nothing is staged */
	struct overlay_hits hits;
	__u64 seen;
	__u64 next;
	__u64 own_now;
	__u64 own_next;
	__u32 len; /* length of the prefix: a look-up of user space may find a wider one */
	__u32 pad;
};
_Static_assert(sizeof(struct overlay_net) == 72, "layout");

static inline __u64 overlay_net_until(const struct overlay_net *n, __u64 epoch)
{
	return n->epoch && n->epoch <= epoch ? n->next : n->now;
}

/* Which addresses have a prefix near them, by direction: one bit for the first 16 bits of an IPv4
 * address, and for a hash of the first 32 bits of an IPv6 address. Only these are looked up. A bit
 * may be set without a prefix. */
#define OVERLAY_NEAR_WORDS 1024
struct overlay_near {
	__u64 from4[OVERLAY_NEAR_WORDS], to4[OVERLAY_NEAR_WORDS];
	__u64 from6[OVERLAY_NEAR_WORDS], to6[OVERLAY_NEAR_WORDS];
	/* Only commands use these: how many prefixes there are of a family, kind and length. */
	__u32 lengths[2][OVERLAY_KINDS][129];
};
_Static_assert(sizeof(struct overlay_near) == 32768 + 2 * 4 * 129 * OVERLAY_KINDS, "layout");

static inline __u32 overlay_near6(__u32 first)
{
	return first * 0x9e3779b1u >> 16;
}
