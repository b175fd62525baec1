/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of `over N connections`: how many connections each source has, by rule.
 *
 * The programs of xdp/connections.bpf.c write it, and the policy reads it for the first packet of a
 * connection. A word has a part of a hash and a count, so that one compare-and-swap adds a source
 * or removes it, and there is no key that another CPU could delete at that time. A source is in one
 * of the lines that its hash selects, or in both; its count is the sum. There are two halves: one
 * is read while the other is counted again. */
#pragma once

#include <linux/types.h>

#define CONNECTION_RULES 32 /* bits of a word */
#define CONNECTION_WORDS 8  /* of a line of 64 bytes */
#define CONNECTION_COUNT 20 /* bits of a count; the others are of the hash */
#define CONNECTION_LINES 2  /* that the hash selects */

/* Element 0. The halves follow: `lines` elements each. */
struct connections_head {
	__u32 active;   /* the half that packets read */
	__u32 counting; /* bits: the halves that programs write */
	__u32 round
		[2]; /* numbers the content of each half; a socket knows in which it is counted */
	__u64 lines; /* a power of two */
	__u64 seed;
	__u64 full[2];   /* of each half: connections without room in it */
	__u64 missed[2]; /* of each half: connections without memory for a mark, and those whose
			    source others changed all the time */
};
_Static_assert(sizeof(struct connections_head) == 64, "layout");

struct connections_line {
	__u64 word[CONNECTION_WORDS];
};
_Static_assert(sizeof(struct connections_line) == sizeof(struct connections_head), "layout");

/* A rule with a number of connections. */
struct connection_rule {
	__u8 mask4, mask6;
	__u8 ports; /* each destination port separately */
	__u8 pad;
};

/* The first `len` bits of 64, counted from bit `from` of an address. */
static inline __attribute__((always_inline)) __u64 connection_bits(__u64 half, __u32 len)
{
	return len >= 64 ? half : len ? half & ~0ull << ((64 - len) & 63) : 0;
}

/* Of an address in host order: IPv4 in the upper 32 bits of `high`. port: 0 unless ports count
 * separately. No sender knows the seed. */
static inline __attribute__((always_inline)) __u64 connection_hash(
	__u64 seed, const struct connection_rule rule, __u32 number, __u32 family, __u64 high,
	__u64 low, __u32 port)
{
	__u32 len = family == 4 ? rule.mask4 : rule.mask6;
	__u64 h;

	high = connection_bits(high, len);
	low = len > 64 ? connection_bits(low, len - 64) : 0;
	h = (high ^ seed) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32 ^ low) * (seed | 1);
	h = (h ^ h >> 29 ^ (port | number << 16 | family << 24)) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ h >> 32) * 0x94d049bb133111ebull;
	return h ^ h >> 31;
}

static inline __attribute__((always_inline)) __u64 connection_tag(__u64 hash)
{
	return hash >> CONNECTION_COUNT << CONNECTION_COUNT;
}

/* The number of its first or second line in a half. */
static inline __attribute__((always_inline)) __u64 connection_line(__u64 hash, __u64 lines,
								   __u32 second)
{
	return (second ? hash >> 17 ^ hash >> 41 : hash) & (lines - 1);
}
