/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the bench and its small programs: the list of sources, the rules of the linear scan. */
#pragma once

#include <linux/types.h>

#define BENCH_SOURCES (1u << 19) /* used one after the other, in random order, repeatedly */

#define BENCH_IDLE 256 /* instructions between two spaced packets */

/* The headers of Ethernet, IPv4 and TCP, in pieces as programs read them: a load that spans two
 * pieces would wait for both stores, which does not happen with packets from a device. */
#define BENCH_HEAD_WORDS 10 /* of IPv4 and TCP */
struct bench_head {
	struct {
		__u32 first;
		__u16 last;
	} __attribute__((packed)) mac[2];
	__u16 ethertype;
	__u32 words[BENCH_HEAD_WORDS];
} __attribute__((packed));
_Static_assert(sizeof(struct bench_head) == 14 + 20 + 20, "layout");

/* A rule of the linear scan, IPv4, in host order. A field that the rule does not name has a mask of
 * zero or a full range. */
struct bench_rule {
	__u32 src, src_mask, dst, dst_mask;
	__u16 sport_first, sport_last, dport_first, dport_last;
	__u8 proto, proto_mask, flags, flags_mask;
	__u16 vlan; /* 0: any */
	__u16 pad;
};
_Static_assert(sizeof(struct bench_rule) == 32, "layout");
