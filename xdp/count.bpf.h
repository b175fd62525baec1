/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "count": one row of the per-CPU counters for each packet. */
#pragma once

#include "xdp/maps.bpf.h"
#include "xdp/packet.bpf.h"

static __always_inline void count(const struct xdp_md *ctx, __u32 reason, __u32 bytes)
{
	__u32 iface = knobs.iface_of[ctx->ingress_ifindex & (WEIR_IFINDEX_TABLE - 1)];
	__u32 row = (iface & (WEIR_IFACES - 1)) * WEIR_REASON_COUNT + reason;
	struct counter *counter = bpf_map_lookup_elem(&counters, &row);

	if (counter) {
		counter->packets++;
		counter->bytes += bytes;
	}
}
