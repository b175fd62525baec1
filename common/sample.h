/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of the ring buffer "samples", and the choice of the packets that are recorded. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "common/event.h"
#include "common/limits.h"

/* A packet when it was counted. The frame of a packet that was sent to a backend is recorded as it
 * left, after its headers were written. Packets of reject rules have REASON_DROP_REJECT in any
 * case: they are recorded before their answer. */
struct sampled {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex; /* of arrival */
	__u16 reason;  /* enum weir_reason */
	__u16 captured;
	/* index of the counter of the rule that decided; EVENT_NO_RULE: no rule did */
	__u32 rule;
	__u32 share;  /* by which the packet was chosen, of 2^32 */
	__u32 length; /* of the frame */
	__u32 bytes;  /* as they were counted: IP length as it arrived, if the packet is IP */
	__u8 packet[WEIR_SAMPLE_SNAP];
};
_Static_assert(sizeof(struct sampled) == 32 + WEIR_SAMPLE_SNAP, "layout");

/* The number of the packet that its counter now counts as this one: each share above that chooses
 * it. A function of the counter, so that the datapath keeps no state; bytes too, because CPUs
 * often have counted equally many packets. The constants are from splitmix64 (Steele, Lea, Flood
 * 2014). */
static inline __u32 sample_number(__u64 packets, __u64 bytes, __u64 seed)
{
	__u64 x = (packets + bytes) ^ seed;

	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 32;
	x *= 0xbf58476d1ce4e5b9ull;
	return (__u32)(x >> 32);
}

static inline bool sample_chooses(__u64 packets, __u64 bytes, __u64 seed, __u32 share)
{
	return sample_number(packets, bytes, seed) < share;
}
