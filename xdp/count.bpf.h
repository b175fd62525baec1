/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "count": adds a packet to the per-CPU counters of its interface and reason. */
#pragma once

#include "xdp/maps.bpf.h"
#include "xdp/packet.bpf.h"

/* For a device without a number: the number of the bond with this member, or of the interface whose
 * index has changed. */
__noinline int number_of_other(__u32 ifindex)
{
	for (int i = 0; i < WEIR_MEMBERS; i++) {
		__u64 slot = knobs.members[i];

		if (!slot)
			break;
		if ((__u32)slot == ifindex)
			return slot >> 32 & (WEIR_IFACES - 1);
	}
	return knobs.iface_rest & (WEIR_IFACES - 1);
}

/* The number of the interface with this index, 0 when it has none. */
static __always_inline __u32 number_of(__u32 ifindex)
{
	__u32 place = iface_bucket(knobs.iface_hash, ifindex);
	__u64 slot;

	// The compiler would leave the mask out, and kernel 6.1 cannot follow why it may.
	asm volatile("" : "+r"(place));
	slot = knobs.iface_buckets[place & (2 * WEIR_IFACE_BUCKETS - 1)];
	if (likely((__u32)slot == ifindex))
		return slot >> 32 & (WEIR_IFACES - 1);
	return (__u32)number_of_other(ifindex) & (WEIR_IFACES - 1);
}

/* The number of the interface of arrival. */
static __always_inline __u32 iface_number(const struct xdp_md *ctx)
{
	return number_of(ctx->ingress_ifindex);
}

static __always_inline void counter_add(struct counter *counter, __u64 bytes)
{
	if (counter) {
		counter->packets++;
		counter->bytes += bytes;
	}
}

/* The counter of a reason on the interface of this number. */
static __always_inline struct counter *counter_of(__u32 number, __u32 reason)
{
	__u32 index = number * WEIR_REASON_COUNT + reason;

	return bpf_map_lookup_elem(&counters, &index);
}

static __always_inline void tally(enum weir_tally which)
{
	__u32 index = WEIR_TALLY_FIRST + which;
	struct counter *counter = bpf_map_lookup_elem(&counters, &index);

	if (counter)
		counter->packets++;
}
