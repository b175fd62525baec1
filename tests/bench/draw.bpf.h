/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the bench and its small programs: the list of sources, the rules of the linear scan. */
#pragma once

#include <linux/types.h>

#define BENCH_SOURCES (1u << 19) /* used one after the other, in random order, repeatedly */

/* A cache line of sources, 16 of IPv4 or 4 of IPv6, in network order; flat, so that the look-up is inlined. */
#define BENCH_CELLS 16
struct bench_cells {
	__u32 cell[BENCH_CELLS];
};

/* The Ethernet and IPv4 headers, in pieces that no header field crosses: a load that spans two pieces would
 * wait for both stores, which does not happen with packets from a device. */
#define BENCH_HEAD_ETHER 7
#define BENCH_HEAD_IP    5
struct bench_head {
	__u16 ether[BENCH_HEAD_ETHER];
	__u16 pad;
	__u32 ip[BENCH_HEAD_IP];
};

/* A rule of the linear scan, IPv4, in host order. A field that the rule does not name has a mask of zero or a
 * full range. */
struct bench_rule {
	__u32 src, src_mask, dst, dst_mask;
	__u16 sport_first, sport_last, dport_first, dport_last;
	__u8 proto, proto_mask, flags, flags_mask;
	__u16 vlan; /* 0: any */
	__u16 pad;
};
_Static_assert(sizeof(struct bench_rule) == 32, "layout");
