/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys and values of the overlay: the entries of `weir block` and `weir allow`.
 *
 * A change of any size is atomic. An entry holds two states: `now`, and `next`, which applies once
 * knobs.epoch has reached the `epoch` of the entry. A command stages all changes and commits them
 * with one 8-byte store into knobs.epoch. A state is an expiry in jiffies64: 0 is absent, ~0 is
 * permanent. */
#pragma once

#include <linux/types.h>

enum overlay_kind {
	OVERLAY_BLOCK_FROM,
	OVERLAY_ALLOW_FROM,
	OVERLAY_BLOCK_TO,
	OVERLAY_ALLOW_TO,
	OVERLAY_KINDS,
};

#define OVERLAY_FOREVER (~0ull)

struct overlay_hits {
	__u64 packets;
	__u64 bytes; /* IP length */
};

/* Hosts: keys are the address alone, 4 or 16 bytes in network order. */
struct overlay_host {
	__u64 now[OVERLAY_KINDS];
	__u64 epoch; /* 0: nothing is staged */
	__u64 seen;  /* jiffies64 of the last packet; near what a block touches, for the cache */
	struct overlay_hits hits[OVERLAY_KINDS];
	__u64 next[OVERLAY_KINDS];
};
_Static_assert(sizeof(struct overlay_host) == 144, "layout");

/* Prefixes: LPM keys. The kind is a part of the key that is always matched whole, so that one kind
 * never hides another. prefixlen counts the 32 bits of the kind too. */
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
};
_Static_assert(sizeof(struct overlay_net6_key) == 24, "layout");

#define OVERLAY_NET_KIND_BITS 32

/* A longest-prefix look-up finds one entry only, and an entry that has expired or waits for its epoch
 * would hide a wider one that is in force. So `now` and `next` hold the latest expiry of the entry and
 * of every wider prefix of its kind; `own_*` is the entry's alone. */
struct overlay_net {
	__u64 now;
	__u64 epoch;
	struct overlay_hits hits;
	__u64 seen;
	__u64 next;
	__u64 own_now;
	__u64 own_next;
};
_Static_assert(sizeof(struct overlay_net) == 64, "layout");
