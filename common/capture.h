/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of the ring buffer "captured": whole frames, and what became of them. */
#pragma once

#include <linux/types.h>

/* A packet when it was counted, as in struct sampled. The frame follows. The record has room for
 * one of few lengths, since kernel 6.1 reserves only constant sizes. */
struct captured {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex; /* of arrival */
	__u32 reason;  /* enum weir_reason */
	/* index of the counter of the rule that decided; EVENT_NO_RULE: no rule did */
	__u32 rule;
	__u32 share;    /* by which the packet was chosen, of 2^32 */
	__u32 length;   /* of the frame */
	__u32 captured; /* bytes that follow */
	__u32 bytes;    /* as in struct sampled */
	__u32 pad;
};
_Static_assert(sizeof(struct captured) == 40, "layout");
