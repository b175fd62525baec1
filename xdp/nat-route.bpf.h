/* SPDX-License-Identifier: GPL-2.0-only */
/* The way to the client of a connection: its peer, or what the routing table of this host has. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp/nat-frame.bpf.h"
#include "xdp/nat-ways.bpf.h"
#include "xdp/transit.bpf.h"
#include "xdp/unroutable.bpf.h"

static __always_inline void nat_ask_route(const struct packet *pkt, const struct nat_names *n,
					  struct bpf_fib_lookup *ask)
{
	ask->ifindex = LOOPBACK_INDEX; /* as a packet that this host sends */
	ask->l4_protocol = pkt->proto;
	ask->tot_len = pkt->length < 0xffff ? pkt->length : 0xffff;
	if (pkt->family == 4) {
		ask->family = FAMILY_IP4;
		ask->tos = pkt->dscp << 2;
		ask->ipv4_src = n->src[0];
		ask->ipv4_dst = n->dst[0];
		return;
	}
	ask->family = FAMILY_IP6;
	ask->flowinfo = bpf_htonl((__u32)pkt->dscp << 22);
	__builtin_memcpy(ask->ipv6_src, n->src, sizeof(ask->ipv6_src));
	__builtin_memcpy(ask->ipv6_dst, n->dst, sizeof(ask->ipv6_dst));
}

/* 0: there is no route, the kernel does not know the MAC address of the next hop, or it does not
 * forward. If the packet is too long for the route, only c->room is set. */
__noinline int nat_route_back(struct xdp_md *ctx, struct packet *pkt)
{
	struct nat_course *c = nat_course_get();
	struct bpf_fib_lookup ask = {};
	long answer;

	if (!pkt || !c)
		return 0;
	nat_ask_route(pkt, &c->names, &ask);
	answer = bpf_fib_lookup(ctx, &ask, sizeof(ask), 0);
	if (answer == BPF_FIB_LKUP_RET_FRAG_NEEDED) {
		c->room = ask.mtu_result;
		return 1;
	}
	if (answer != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	__builtin_memcpy(c->macs, ask.dmac, ETH_ALEN);
	__builtin_memcpy(c->macs + ETH_ALEN, ask.smac, ETH_ALEN);
	c->vlan = 0;
	c->ifindex = ask.ifindex;
	return 1;
}

/* The MTU of the egress if the packet is longer, else 0. */
static __always_inline __u32 nat_too_long(struct xdp_md *ctx, const struct packet *pkt,
					  const struct nat_course *c)
{
	__u32 mtu = pkt->length; /* to the helper, it is the length */

	return bpf_check_mtu(ctx, c->ifindex, &mtu, 0, 0) == BPF_MTU_CHK_RET_FRAG_NEEDED ? mtu : 0;
}

/* The next hop of the answer in the course, whose names are known, or c->room. */
static __always_inline bool nat_way_back(struct xdp_md *ctx, struct packet *pkt,
					 struct nat_course *c)
{
	const struct nat_peer *peer = nat_peer_at(nat_peer(c->held.word));

	c->room = 0;
	c->ifindex = nat_device_of(peer).ifindex;
	if (likely(c->ifindex)) {
		__builtin_memcpy(c->macs, peer, 2 * ETH_ALEN);
		c->vlan = peer->vlan;
	} else if (!nat_route_back(ctx, pkt)) {
		return false;
	}
	if (!c->room)
		c->room = nat_too_long(ctx, pkt, c);
	return true;
}
