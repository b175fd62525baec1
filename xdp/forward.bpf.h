/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "forward": adds the headers of the mode and sends the packet to the next hop of its
 * backend.
 *
 *   dr    new MAC addresses only
 *   ipip  IP in IP: RFC 2003, RFC 2473, RFC 4213
 *   gue   UDP, followed directly by IP: variant 1 of draft-ietf-intarea-gue
 *
 * All modes decrement TTL or hop limit. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp/generic.bpf.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/outer.bpf.h"
#include "xdp/reply.bpf.h"
#include "xdp/sum.bpf.h"

/* Offsets after a link header. */
#define LINK_MASK 31

static __always_inline bool has_mode(__u32 mode)
{
	return MARKER(MARK_MODES) >> mode & 1;
}

/* One hop less; returns type of service or traffic class, -1: the header is out of reach. */
static __always_inline int take_hop(struct xdp_md *ctx, const struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	void *ip;

	if (pkt->family == 4)
		return (ip = header_at(ctx, l3, sizeof(struct iphdr))) ? hop_less4(ip) : -1;
	return (ip = header_at(ctx, l3, sizeof(struct ipv6hdr))) ? hop_less6(ip) : -1;
}

/* The sum of the inner packet, known from its headers. -1: it must be added up, for example if
 * options or extension headers may give the pseudo-header another destination. */
static __always_inline int inner_sum(struct xdp_md *ctx, const struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	__u32 header = pkt->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	const __u16 *check = checksum_at(ctx, pkt);
	const void *ip;

	if (!check || !*check || pkt->l4_offset != l3 + header)
		return -1;
	if (pkt->family == 4)
		return inner_of(4, pseudo_of(pkt), NULL);
	ip = header_at(ctx, l3, sizeof(struct ipv6hdr));
	return ip ? (int)inner_of(6, pseudo_of(pkt), ip) : -1;
}

/* The headers of a tunnel after `link` bytes. */
static __always_inline bool put_tunnel(struct xdp_md *ctx, const struct backend *to, struct outer o,
				       __u32 link, const __u32 mode)
{
	void *at;

	if (to->family == 4) {
		if (!(at = header_at(ctx, link & LINK_MASK, outer_bytes(mode, 4))))
			return false;
		write_tunnel4(at, to, o, mode);
	} else {
		if (!(at = header_at(ctx, link & LINK_MASK, outer_bytes(mode, 6))))
			return false;
		write_tunnel6(at, to, o, mode);
	}
	return true;
}

/* All headers of the frame; ethertype: of what follows the link header. */
static __always_inline bool put_headers(struct xdp_md *ctx, const struct backend *to, __u32 mode,
					struct outer o, __u32 vlan, __u16 ethertype)
{
	void *frame = header_at(ctx, 0, LINK_BYTES);
	__u32 link = link_bytes(vlan);

	if (!frame)
		return false;
	write_link(frame, to, vlan, ethertype);
#define PUT_TUNNEL(symbol, ...)                   \
	if (has_mode(symbol) && mode == (symbol)) \
		return put_tunnel(ctx, to, o, link, symbol);
	WORDS_OF_TUNNELS(PUT_TUNNEL)
#undef PUT_TUNNEL
	return mode == SERVICE_DR;
}

/* Sends it back on the interface of arrival, or through another device. */
static __always_inline int send(struct xdp_md *ctx, struct packet *pkt, const struct backend *to)
{
	if (to->ifindex == ctx->ingress_ifindex) {
		pkt->verdict = XDP_TX;
		return REASON_PASS_SERVICE;
	}
	pkt->verdict = XDP_REDIRECT;
	return bpf_redirect_map(&egress, to->ifindex, 0) == XDP_REDIRECT ? REASON_PASS_SERVICE
									 : REASON_DROP_NO_NEXT_HOP;
}

/* The path MTU to a backend: the egress MTU, or less while a router's report is valid. */
static __always_inline __u32 way_mtu(const struct service *s, struct backend *to)
{
	__u32 path = *(volatile __u32 *)&to->path, mtu = to->mtu;

	if (likely(!path) || path_mtu(path) >= mtu)
		return mtu;
	if (path_lives(path, pin_time(now_jiffies(), s->pin_shift), s->path_ticks))
		return path_mtu(path);
	if (!is_test())
		__sync_val_compare_and_swap(&to->path, path, 0);
	return mtu;
}

/* The MTU for the client if the path has `mtu`: not less than clients accept, so that a false
 * report of a router cannot cut them off. */
static __always_inline __u32 client_mtu(__u32 family, __u32 mtu, __u32 outer)
{
	__u32 least = family == 4 ? SERVICE_CLIENT_MIN4 : SERVICE_CLIENT_MIN6;

	mtu -= outer;
	return mtu < least ? least : mtu;
}

/* Bytes of a packet that is still sent. */
static __always_inline __u32 way_room(const struct packet *pkt, const struct service *s,
				      struct backend *to, __u32 outer)
{
	__u32 room = client_mtu(pkt->family, way_mtu(s, to), outer), egress = to->mtu - outer;

	return room < egress ? room : egress;
}

/* The time is tested only for packets that are too long according to the report. */
static __always_inline bool is_too_long(const struct backend *to, __u32 length)
{
	__u32 path = *(volatile __u32 *)&to->path;

	return unlikely(length > to->mtu) || (unlikely(path) && length > path_mtu(path));
}

/* Why the packet cannot go there, or GO_ON. */
static __always_inline int forward_check(struct xdp_md *ctx, struct packet *pkt,
					 const struct service *s, struct backend *to, __u32 outer)
{
	__u32 room;

	if (to->here)
		return REASON_PASS_HERE;
	if (unlikely(!to->ifindex))
		return REASON_DROP_NO_NEXT_HOP;
	if (unlikely(to->no_xmit) && to->ifindex != ctx->ingress_ifindex && !is_generic(ctx))
		return REASON_DROP_EGRESS;
	if (unlikely(pkt->ttl <= 1))
		return reply_error(ctx, pkt, REPLY_TTL_EXCEEDED, 0) ? REASON_PASS_TTL
								    : REASON_DROP_TTL;
	if (is_too_long(to, pkt->length + outer)) {
		room = way_room(pkt, s, to, outer);
		if (pkt->length > room)
			return reply_error(ctx, pkt, REPLY_TOO_BIG, room) ? REASON_PASS_TOO_BIG
									  : REASON_DROP_TOO_BIG;
	}
	return GO_ON;
}

/* Trims the bytes after the packet in its frame, if they make the frame too long for the egress. */
__noinline int cut_tail(struct xdp_md *ctx, struct packet *pkt, __u32 room)
{
	__u32 length = bpf_xdp_get_buff_len(ctx);

	if (!pkt || length <= pkt->l3_offset + room)
		return pkt != NULL;
	return !bpf_xdp_adjust_tail(ctx, (int)pkt->end - (int)length);
}

/* The kernel measures frames and not packets, and loses without a word what it finds too long.
 * Nearly all frames end with their packet or have the minimum size; a frame whose first buffer ends
 * there counts as one of these. `room`: what the packet may be long. */
static __always_inline bool trim_tail(struct xdp_md *ctx, struct packet *pkt, __u32 room)
{
	__u32 first = ctx->data_end - ctx->data;

	return likely(first == pkt->end) || likely(first <= FRAME_SHORT) ||
	       cut_tail(ctx, pkt, room);
}

/* Ready to be wrapped: sums and hops are done, headroom is there. Completes *o. */
static __always_inline bool encap_begin(struct xdp_md *ctx, struct packet *pkt,
					const struct service *s, const struct backend *to,
					__u32 vlan, struct outer *o)
{
	__u32 outer = outer_bytes(s->mode, to->family);
	int tos, sum = 0, move;

	if (!trim_tail(ctx, pkt, to->mtu - outer))
		return false;
	checksum_check(ctx, pkt, s);
	if ((tos = take_hop(ctx, pkt)) < 0)
		return false;
	o->tos = tos;
	if (has_mode(OUTER_SUMMED) && outer_is_summed(s->mode, to->family)) {
		if ((sum = inner_sum(ctx, pkt)) < 0)
			sum = sum_packet(ctx, pkt->l3_offset, pkt->length);
		if (sum < 0)
			return false;
	}
	o->inner = sum;
	move = (int)pkt->l3_offset - (int)(link_bytes(vlan) + outer);
	return !move || !bpf_xdp_adjust_head(ctx, move);
}

/* A reason; PASS_SERVICE: the frame is ready to be sent, by pkt->verdict. */
static __always_inline int forward(struct xdp_md *ctx, struct packet *pkt, const struct service *s,
				   struct backend *to, __u64 hash)
{
	int reason = forward_check(ctx, pkt, s, to, outer_bytes(s->mode, to->family));
	__u16 family = s->mode == SERVICE_DR ? pkt->family : to->family;
	__u16 ethertype = family == 4 ? ETH_P_IP : ETH_P_IPV6;
	struct outer o = {
		.hash = hash,
		.length = pkt->length,
		.proto = outer_proto(pkt->family, s->mode),
	};
	__u32 vlan = *(volatile __u16 *)&to->vlan; /* once: the headroom must fit the header */

	if (reason != GO_ON)
		return reason;
	if (!encap_begin(ctx, pkt, s, to, vlan, &o) ||
	    !put_headers(ctx, to, s->mode, o, vlan, ethertype))
		return REASON_DROP_FORWARD;
	return send(ctx, pkt, to);
}
