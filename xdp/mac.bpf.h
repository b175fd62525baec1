/* SPDX-License-Identifier: GPL-2.0-only */
/* The condition `mac`: searches the source address of a frame among the edges of a list. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>

#include "xdp/tables.bpf.h"

#include "common/edges.h"

/* 1 or 0. Global: the verifier follows the search once. */
__noinline int mac_holds(struct xdp_md *ctx, __u32 first, __u32 n)
{
	const __u8 *source = (const __u8 *)(long)ctx->data + ETH_ALEN;
	__u64 mac;

	if (source + ETH_ALEN > (const __u8 *)(long)ctx->data_end)
		return 0;
	mac = (__u64)bpf_ntohs(*(const __be16 *)source) << 32;
	mac |= bpf_ntohl(*(const __be32 *)(source + 2));
	return edges_hold(NULL, mac, first, n);
}
