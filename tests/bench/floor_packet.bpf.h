/* SPDX-License-Identifier: GPL-2.0-only */
/* Common to all floors of the filter: TCP or UDP over IP without options, two counters. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/floor.bpf.h"

#define FRAGMENT 0x3fff /* more fragments, and the offset */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct floor_counter);
} counters SEC(".maps");

/* NULL: another kind of packet. */
static __always_inline const struct iphdr *common_packet(const struct xdp_md *ctx)
{
	const struct ethhdr *ether = (void *)(long)ctx->data;
	const struct iphdr *ip = (void *)(ether + 1);

	if ((void *)((const struct udphdr *)(ip + 1) + 1) > (void *)(long)ctx->data_end ||
	    ether->h_proto != bpf_htons(ETH_P_IP) || *(const __u8 *)ip != 0x45 ||
	    ip->frag_off & bpf_htons(FRAGMENT))
		return (void *)0;
	return ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP ? ip : (void *)0;
}

static __always_inline int count(const struct xdp_md *ctx, int verdict)
{
	__u32 index = verdict == XDP_DROP;
	struct floor_counter *c = bpf_map_lookup_elem(&counters, &index);

	if (c) {
		c->packets++;
		c->bytes += ctx->data_end - ctx->data;
	}
	return verdict;
}

static __always_inline const struct ipv6hdr *common_packet6(const struct xdp_md *ctx)
{
	const struct ethhdr *ether = (void *)(long)ctx->data;
	const struct ipv6hdr *ip = (void *)(ether + 1);

	if ((void *)((const struct udphdr *)(ip + 1) + 1) > (void *)(long)ctx->data_end ||
	    ether->h_proto != bpf_htons(ETH_P_IPV6))
		return (void *)0;
	return ip->nexthdr == IPPROTO_TCP || ip->nexthdr == IPPROTO_UDP ? ip : (void *)0;
}
