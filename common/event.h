/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of the ring buffer "events". */
#pragma once

#include <linux/types.h>

#include "common/limits.h"

#define EVENT_NO_RULE (~0u)

struct event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u16 reason;   /* enum weir_reason */
	__u16 captured; /* bytes of packet[] that are filled */
	__u32 length;   /* of the frame */
	__u32 missed; /* events this CPU did not send since its last one, rate limit or full ring */
	/* index of the counter of the rule that logged or dropped it; EVENT_NO_RULE: none did */
	__u32 rule;
	__u32 logged; /* 1: by `log` of the rule; 0: a sampled drop */
	__u8 packet[WEIR_SNAP_MAX];
};
_Static_assert(sizeof(struct event) == 32 + WEIR_SNAP_MAX, "layout");

/* A refused call; it is known by its size. */
struct event_out {
	__u64 time_ns;
	__u64 netns_cookie;
	__u32 pid;
	__u32 uid;
	__u8 addr[16]; /* IPv4 in the first four bytes */
	__u16 port;
	__u8 family; /* 4 or 6 */
	__u8 proto;
	__u32 kind; /* enum overlay_kind */
	char command[16];
};
_Static_assert(sizeof(struct event_out) == 64, "layout");
