/* SPDX-License-Identifier: GPL-2.0-only */
/* Records of the events ring. */
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
	__u32 rule; /* row of the rule counters for a `log` record, EVENT_NO_RULE for a sampled drop */
	__u32 pad;
	__u8 packet[WEIR_SNAP_MAX];
};
_Static_assert(sizeof(struct event) == 32 + WEIR_SNAP_MAX, "layout");
