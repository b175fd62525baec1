/* SPDX-License-Identifier: GPL-2.0-only */
/* The condition `unroutable`: does the route to the source of a packet lead by another device than
 * the packet arrives on, or is there no route?
 *
 * The kernel is asked as for a packet that this host sends: by the loopback device, which must
 * forward. Without a clear answer the rule does not match. */
#pragma once

#include <linux/bpf.h>
#include <linux/in.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/abi.h"
#include "xdp/packet.bpf.h"
#include "xdp/transit.bpf.h"

#define LOOPBACK_INDEX 1 /* in each network namespace */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_ROUTED);
	__type(key, struct routed_key);
	__type(value, struct routed);
} routed SEC(".maps");

/* Multicast, or the broadcast of the link. */
static __always_inline bool is_group4(__u32 addr)
{
	return bpf_ntohl(addr) >> 28 == 14 || addr == 0xffffffff;
}

static __always_inline bool is_zero6(const __u32 *addr)
{
	return !(addr[0] | addr[1] | addr[2] | addr[3]);
}

/* Has the address the scope of the link? */
static __always_inline bool is_on_link6(const __u32 *addr)
{
	return is_link_local6(addr) || (bpf_ntohl(addr[0]) & 0xff0f0000) == 0xff020000;
}

/* A host without an address asks for one: from 0.0.0.0 to all hosts or to 224.0.0.0/24 (RFC 1122
 * section 3.2.1.3), and by ICMPv6 from :: to an address of the link (RFC 4862 section 5.4.2). A
 * link-local address is one of the link that the packet arrives on (RFC 4291 section 2.5.6). */
static __always_inline bool is_of_link(const struct packet *pkt)
{
	if (pkt->family == 4)
		return !pkt->src[0] &&
		       (pkt->dst[0] == 0xffffffff || bpf_ntohl(pkt->dst[0]) >> 8 == 0xe00000);
	if (is_link_local6(pkt->src))
		return true;
	return pkt->proto == IPPROTO_ICMPV6 && is_zero6(pkt->src) && is_on_link6(pkt->dst);
}

/* Rules of routing see the packet as its answer: from the destination, if that is one host, to the
 * source. The kernel finds no route for a sender with a link-local address. */
static __always_inline void ask_for_source(const struct packet *pkt, struct bpf_fib_lookup *ask)
{
	ask->ifindex = LOOPBACK_INDEX;
	ask->l4_protocol = pkt->proto;
	if (pkt->family == 4) {
		ask->family = FAMILY_IP4;
		ask->tos = pkt->dscp << 2;
		ask->ipv4_dst = pkt->src[0];
		ask->ipv4_src = is_group4(pkt->dst[0]) ? 0 : pkt->dst[0];
		return;
	}
	ask->family = FAMILY_IP6;
	ask->flowinfo = bpf_htonl((__u32)pkt->dscp << 22);
	__builtin_memcpy(ask->ipv6_dst, pkt->src, sizeof(ask->ipv6_dst));
	if (!is_to_link(pkt))
		__builtin_memcpy(ask->ipv6_src, pkt->dst, sizeof(ask->ipv6_src));
}

/* Do frames with these tags reach the stack by the device? A tag with VID 0 is no VLAN; what the
 * kernel does with a further tag after it depends on the driver. */
static __always_inline bool arrives_by(const struct packet *pkt, __u32 number, __u32 ifindex)
{
	struct routed_key key = {.ifindex = ifindex, .number = number};
	const struct routed *by = bpf_map_lookup_elem(&routed, &key);
	__u32 vid = packet_vid(pkt), tags = pkt->tags;

	if (!by)
		return false;
	if (by->any_frame || (tags > 1 && !vid))
		return true;
	return by->vid == vid && by->tags == (vid ? tags : 0);
}

/* 1 or 0. Global: the verifier follows it once. */
__noinline int unroutable(struct xdp_md *ctx, struct packet *pkt)
{
	struct bpf_fib_lookup ask = {};
	__u32 device, number;

	if (!pkt || !pkt->family || is_of_link(pkt) || !(device = transit_device(ctx)))
		return 0;
	number = number_of(device) & (WEIR_IFACES - 1);
	if (!(knobs.routed >> number & 1))
		return 0;
	ask_for_source(pkt, &ask);
	switch (bpf_fib_lookup(ctx, &ask, sizeof(ask), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH: /* the device is known nevertheless */
		return !arrives_by(pkt, number, ask.ifindex);
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
	case BPF_FIB_LKUP_RET_NOT_FWDED: /* no route, or an address of this host */
		return 1;
	default:
		return 0;
	}
}
