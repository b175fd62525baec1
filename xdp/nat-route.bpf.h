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
 * forward. */
__noinline int nat_route_back(struct xdp_md *ctx, struct packet *pkt)
{
	struct nat_course *c = nat_course_get();
	struct bpf_fib_lookup ask = {};

	if (!pkt || !c)
		return 0;
	nat_ask_route(pkt, &c->names, &ask);
	if (bpf_fib_lookup(ctx, &ask, sizeof(ask), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	__builtin_memcpy(c->macs, ask.dmac, ETH_ALEN);
	__builtin_memcpy(c->macs + ETH_ALEN, ask.smac, ETH_ALEN);
	c->vlan = 0;
	c->ifindex = ask.ifindex;
	return 1;
}

/* The next hop of the answer in the course, whose names are known. */
static __always_inline bool nat_way_back(struct xdp_md *ctx, struct packet *pkt,
					 struct nat_course *c)
{
	const struct nat_peer *peer = nat_peer_at(nat_peer(c->held.word));

	c->ifindex = nat_device_of(peer);
	if (unlikely(!c->ifindex))
		return nat_route_back(ctx, pkt);
	__builtin_memcpy(c->macs, peer, 2 * ETH_ALEN);
	c->vlan = peer->vlan;
	return true;
}
