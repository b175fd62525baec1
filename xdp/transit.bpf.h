/* SPDX-License-Identifier: GPL-2.0-only */
/* Is a packet addressed to this host, or would this host route it on?
 *
 * Packets that keep a host on its link are exempt from blocks and defaults, but not if this host
 * would only route it on. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp/station.bpf.h"

#define FAMILY_IP4 2 /* AF_INET, AF_INET6: <sys/socket.h> does not compile for BPF */
#define FAMILY_IP6 10

static __always_inline bool is_link_local6(const __u32 *addr)
{
	return bpf_ntohl(addr[0]) >> 22 == 0xfe80 >> 6;
}

/* Link-local, multicast, or the broadcast of the link: never routed, so no look-up is needed. */
static __always_inline bool is_to_link(const struct packet *pkt)
{
	__u32 first = bpf_ntohl(pkt->dst[0]);

	if (pkt->family == 6)
		return first >> 24 == 0xff || is_link_local6(pkt->dst);
	return first >> 28 == 14 || first >> 16 == 0xa9fe || first == 0xffffffff;
}

/* The device whose routing decides. A test packet has one only if it is given. */
static __always_inline __u32 transit_device(const struct xdp_md *ctx)
{
	const struct policy_test *test;
	__u32 ifindex = ctx->ingress_ifindex;

	/* Read now: the compiler would choose between two pointers, of which one must not be
	 * computed. */
	asm volatile("" : "+r"(ifindex));
	if (!is_test())
		return ifindex;
	return (test = test_get()) ? test->ifindex : 0;
}

/* A VLAN or a bridge may forward though the device below it does not. */
static __always_inline __u32 forwards_above(const struct packet *pkt, __u32 device)
{
	return knobs.forwards[pkt->family == 6][number_of(device) & (WEIR_IFACES - 1)];
}

/* A VLAN in a VRF has other routes than the interface below it, and a switch that is not the
 * kernel's may have the frame for anybody. There the exemptions hold for all: a host must not lose
 * its neighbours. */
static __always_inline bool is_unsure(__u32 device)
{
	return knobs.unsure >> (number_of(device) & (WEIR_IFACES - 1)) & 1;
}

/* There is a route, even if the kernel cannot return the next hop at the moment. */
static __always_inline bool leads_on(long answer)
{
	return answer == BPF_FIB_LKUP_RET_SUCCESS || answer >= BPF_FIB_LKUP_RET_UNSUPP_LWT;
}

/* Would this host route it on? Asks the kernel, not a table: the kernel knows the present
 * addresses, local prefixes and forwarding, including changes since the last command. Unknown
 * destinations are not forwarded. Frames to other stations do not leave either: a bridge may pass
 * them on, but only on the same link. */
__noinline int is_in_transit(struct xdp_md *ctx, struct packet *pkt)
{
	struct bpf_fib_lookup ask = {};
	__u32 device;
	long answer;

	/* Its destination is only the next one: nothing that keeps a host on its link is sent
	 * so. */
	if (pkt && pkt->source_routed)
		return true;
	if (!pkt || !pkt->family || is_to_link(pkt) || !is_for_one(ctx) || !is_for_us(ctx))
		return false;
	if (!(device = transit_device(ctx)) || is_unsure(device))
		return false;
	ask.ifindex = device;
	ask.family = pkt->family == 4 ? FAMILY_IP4 : FAMILY_IP6;
	if (pkt->family == 4) {
		ask.ipv4_src = pkt->src[0];
		ask.ipv4_dst = pkt->dst[0];
	} else {
		__builtin_memcpy(ask.ipv6_src, pkt->src, sizeof(ask.ipv6_src));
		__builtin_memcpy(ask.ipv6_dst, pkt->dst, sizeof(ask.ipv6_dst));
	}
	answer = bpf_fib_lookup(ctx, &ask, sizeof(ask), 0);
	if (answer == BPF_FIB_LKUP_RET_FWD_DISABLED && (ask.ifindex = forwards_above(pkt, device)))
		answer = bpf_fib_lookup(ctx, &ask, sizeof(ask), 0);
	return leads_on(answer);
}
