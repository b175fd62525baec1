/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of the floors: programs written for one row of the bench, with nothing else. */
#pragma once

#include <linux/types.h>

/* Hosts: open addressing, a key in each cell, 0 if it is empty; less than half of the cells are
 * used. */
#define FLOOR_CELLS_LOG2 21
#define FLOOR_CELLS      (1u << FLOOR_CELLS_LOG2)
#define FLOOR_MULTIPLIER 0x9e3779b97f4a7c15ull
#define FLOOR_PROBES     64

/* Prefixes: by the upper 16 bits FLOOR_NONE, FLOOR_ALL, or a node; a node is a range of the lower
 * 16 bits. */
#define FLOOR_NONE   0
#define FLOOR_ALL    1
#define FLOOR_FIRST  2 /* number of the first node */
#define FLOOR_NODES  65536
#define FLOOR_RANGES 16 /* of one /16 */

struct floor_node {
	__u16 low, span;
	__u16 next; /* node, or FLOOR_NONE */
	__u16 pad;
};
_Static_assert(sizeof(struct floor_node) == 8, "layout");

struct floor_counter {
	__u64 packets, bytes;
};

/* Many prefixes: by the first 18 bits a cell with two bits for each /24: the whole /24, or a leaf
 * with a bit for each address. The leaves of a cell follow each other from first[cell] on. */
#define FLOOR_BITS_SHIFT 14
#define FLOOR_BITS_CELLS (1u << (32 - FLOOR_BITS_SHIFT))
#define FLOOR_LEAVES     (1u << 19)

struct floor_bits {
	__u64 mixed, all;
};

struct floor_leaf {
	__u64 in[4];
};

/* IPv6 hosts: like IPv4 hosts, in words in memory order. */
#define FLOOR_CELLS6_LOG2 18
#define FLOOR_CELLS6      (1u << FLOOR_CELLS6_LOG2)

struct floor_host6 {
	__u64 high, low;
};

static inline __u32 floor_host6_hash(struct floor_host6 host, __u32 shift)
{
	return (__u32)((host.high ^ host.low * FLOOR_MULTIPLIER) * FLOOR_MULTIPLIER >>
		       (shift & 63));
}

/* IPv6 prefixes of 32 to 64 bits, in host order: by a hash of the first 32 bits a chain of nodes,
 * each a range of the first 64 bits. 0 ends it. */
#define FLOOR_HEADS_LOG2 18
#define FLOOR_HEADS      (1u << FLOOR_HEADS_LOG2)
#define FLOOR_NODES6     (1u << 17)

struct floor_node6 {
	__u64 low;
	__u32 span,
		next; /* span: of the lower 32 bits, as all of a range have the same upper ones */
};

static inline __u32 floor_head_hash(__u64 high)
{
	return (__u32)((high >> 32) * FLOOR_MULTIPLIER >> (64 - FLOOR_HEADS_LOG2));
}

/* Rates: lines of sources, each with the time of its last packet. */
#define FLOOR_RATES_LOG2 15

struct floor_rates {
	__u64 source[8]; /* above the time, of 32 bits */
};

/* The balancer: the headers that it writes before a packet, in the order of the frame, and their
 * values. */
#define FLOOR_SLOTS    16381
#define FLOOR_BACKENDS 256
#define FLOOR_HEAD     34 /* Ethernet and IPv4 */

struct floor_backend {
	__u8 head[40]; /* length, identification and checksum are 0 */
	__u32 sum;     /* sum of these headers, not folded */
	__u32 ifindex, mtu;
	__u32 pad[3];
};
_Static_assert(sizeof(struct floor_backend) == 64, "layout");

/* VIPs: a line by a hash of address and port; a free end has service 0. */
#define FLOOR_VIPS       5
#define FLOOR_LINES_LOG2 6
struct floor_line {
	struct {
		__u32 address;
		__u16 port, proto;
		__u32 service;
	} end[FLOOR_VIPS];
	__u32 pad;
};
_Static_assert(sizeof(struct floor_line) == 64, "layout");

static inline __u32 floor_line_of(__u32 address, __u16 port)
{
	return (__u32)((address ^ (__u64)port << 32) * FLOOR_MULTIPLIER >> (64 - FLOOR_LINES_LOG2));
}

/* Pins: buckets of a cache line. */
#define FLOOR_BUCKETS_MAX (1u << 18)
struct floor_bucket {
	__u64 pin[8];
};
