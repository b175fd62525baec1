/* SPDX-License-Identifier: GPL-2.0-only */
/* What the bench and its small programs share: sources to draw from, rules of the linear scan. */
#pragma once

#include <linux/types.h>

#define BENCH_SOURCES (1u << 19) /* drawn one after the other, in random order, over and over */

/* A line of sources: 16 of IPv4, 4 of IPv6, in network order; flat, so that the look-up is inlined. */
#define BENCH_CELLS 16
struct bench_cells {
	__u32 cell[BENCH_CELLS];
};

/* The headers of Ethernet and IPv4, in pieces that no field of theirs crosses: a load of two of them
 * would wait for both stores, as it never does for a packet from a device. */
#define BENCH_HEAD_ETHER 7
#define BENCH_HEAD_IP    5
struct bench_head {
	__u16 ether[BENCH_HEAD_ETHER];
	__u16 pad;
	__u32 ip[BENCH_HEAD_IP];
};

/* A rule of the linear scan, IPv4, in host order: masks of zero and spans of everything where the rule does
 * not name the field. */
struct bench_rule {
	__u32 src, src_mask, dst, dst_mask;
	__u16 sport_first, sport_last, dport_first, dport_last;
	__u8 proto, proto_mask, flags, flags_mask;
	__u16 vlan; /* 0: any */
	__u16 pad;
};
_Static_assert(sizeof(struct bench_rule) == 32, "layout");
