/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "forward": adds the headers of the mode and sends the packet to the next hop of its backend.
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

#include "common/decap.h"
#include "xdp/generic.bpf.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/reply.bpf.h"
#include "xdp/sum.bpf.h"

#define OUTER_TTL 64
/* Source ports of GUE: the dynamic ones, the rest from the flow's hash. */
#define GUE_PORT_FIRST 0xc000
#define GUE_PORT_MASK  0x3fff

/* What is put around the packet. In a map, as the packet: the verifier need not know of it. */
struct encap {
	__u64 hash;
	__u32 length; /* of the packet inside, IP */
	__u32 link;   /* bytes of the link header */
	__u32 inner;  /* sum of the packet inside, for GUE in IPv6 */
	__u8 proto;   /* of the outer header */
	__u8 tos;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct encap);
} encaps SEC(".maps");

/* Bytes of link headers are 14 or 18. */
#define LINK_BYTES_MAX 31
/* The least that Ethernet carries, with a tag or the checksum: so long a short packet may have been made. */
#define FRAME_SHORT 64

static __always_inline bool has_mode(__u32 mode)
{
	return policy.modes >> mode & 1;
}

static __always_inline __u32 outer_bytes(__u32 mode, __u32 family)
{
	if (mode == SERVICE_DR)
		return 0;
	return (family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
	       (mode == SERVICE_GUE ? sizeof(struct udphdr) : 0);
}

/* One hop less; returns type of service or traffic class, -1: the header is out of reach. The checksum of
 * IPv4 follows (RFC 1624). */
static __always_inline int take_hop(struct xdp_md *ctx, const struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;

	if (pkt->family == 4) {
		struct iphdr *ip = header_at(ctx, l3, sizeof(*ip));
		__u32 check;

		if (!ip)
			return -1;
		check = ip->check + bpf_htons(0x0100);
		ip->check = check + (check >= 0xffff);
		ip->ttl--;
		return ip->tos;
	}
	struct ipv6hdr *ip = header_at(ctx, l3, sizeof(*ip));

	if (!ip)
		return -1;
	ip->hop_limit--;
	return bpf_ntohs(*(const __be16 *)ip) >> 4 & 0xff;
}

/* Which bits of the last 32 of the source are drawn: network order. */
static __always_inline __u32 source_drawn(const struct backend *to, __u32 bits)
{
	__u32 len = to->source_len;

	if (len >= bits)
		return 0;
	return bits - len >= 32 ? ~0u : bpf_htonl(~0u >> (len & 31));
}

static __always_inline __u32 outer_source4(__u64 hash, const struct backend *to)
{
	return to->source[0] | (bpf_htonl(hash >> 32) & source_drawn(to, 32));
}

static __always_inline void outer_source6(__u64 hash, const struct backend *to, __u32 *ret)
{
	__builtin_memcpy(ret, to->source, 16);
	ret[3] |= bpf_htonl(hash >> 32) & source_drawn(to, 128);
}

static __always_inline __u16 gue_port(__u64 hash)
{
	return bpf_htons(GUE_PORT_FIRST | (hash & GUE_PORT_MASK));
}

static __always_inline void write_outer4(struct iphdr *ip, const struct encap *w,
					 const struct backend *to, __u32 length)
{
	__be16 *word = (__be16 *)ip, first = bpf_htons(0x4500 | w->tos);
	__be16 id = bpf_htons(w->hash >> 16); /* of no meaning with DF: RFC 6864 */
	__be16 hops = bpf_htons(OUTER_TTL << 8 | w->proto), total = bpf_htons(length);
	__be32 source = outer_source4(w->hash, to), dest = to->addr[0];
	/* Not read back: 16 bits that were stored in two pieces cannot be forwarded. */
	__u64 sum = (__u64)first + total + id + bpf_htons(0x4000) + hops + source + dest;

	word[0] = first;
	ip->tot_len = total;
	ip->id = id;
	ip->frag_off = bpf_htons(0x4000);
	word[4] = hops;
	ip->check = csum_fold(sum);
	ip->saddr = source;
	ip->daddr = dest;
}

static __always_inline void write_outer6(struct ipv6hdr *ip, const struct encap *w,
					 const struct backend *to, __u32 payload)
{
	__u32 source[4];

	outer_source6(w->hash, to, source);
	*(__be32 *)ip = bpf_htonl(6u << 28 | (__u32)w->tos << 20 | (w->hash & 0xfffff));
	ip->payload_len = bpf_htons(payload);
	ip->nexthdr = w->proto;
	ip->hop_limit = OUTER_TTL;
	__builtin_memcpy(&ip->saddr, source, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, to->addr, sizeof(ip->daddr));
}

static __always_inline void write_gue(struct udphdr *udp, const struct encap *w)
{
	udp->source = gue_port(w->hash);
	udp->dest = bpf_htons(DECAP_PORT);
	udp->len = bpf_htons(sizeof(*udp) + w->length);
	udp->check = 0;
}

/* Of GUE over IPv6, which must have one (RFC 8200 section 8.1). The packet inside has been summed up. */
static __always_inline void check_gue(struct udphdr *udp, const struct ipv6hdr *ip,
				      const struct encap *w)
{
	__u64 sum = (__u64)w->inner + bpf_htons(IPPROTO_UDP) + udp->len + udp->source + udp->dest +
		    udp->len;

	sum = csum_add(sum, &ip->saddr, 16);
	udp->check = csum_fold(sum);
	if (!udp->check)
		udp->check = 0xffff;
}

/* The sum of the packet inside, known from its headers: what TCP or UDP sum up to with their pseudo-header
 * is all ones, and so is a header of IPv4. -1: it has to be added up, as where options or extension headers
 * may say that the pseudo-header has another destination. */
static __always_inline int inner_sum(struct xdp_md *ctx, const struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	__u32 header = pkt->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	const __u16 *check = checksum_at(ctx, pkt);

	if (!check || !*check || pkt->l4_offset != l3 + header)
		return -1;
	if (pkt->family == 4)
		return sum_fold(0xffff & ~sum_pseudo(pkt));
	const __u16 *ip = header_at(ctx, l3, sizeof(struct ipv6hdr));

	if (!ip)
		return -1;
	return sum_fold((__u64)sum_fold((__u64)ip[0] + ip[1] + ip[2] + ip[3] + sum_addresses(pkt)) +
			(0xffff & ~sum_pseudo(pkt)));
}

/* The header of Ethernet is packed: with memcpy it would be byte by byte. */
static __always_inline void copy_mac(void *to, const __u8 *from)
{
	const __u16 *source = (const void *)from;
	__u16 *word = to;

	word[0] = source[0];
	word[1] = source[1];
	word[2] = source[2];
}

static __always_inline bool write_link(struct xdp_md *ctx, const struct backend *to,
				       __u16 ethertype)
{
	struct ethhdr *eth = header_at(ctx, 0, sizeof(*eth) + sizeof(struct vlan_tag));

	if (!eth)
		return false;
	copy_mac(eth->h_dest, to->mac);
	copy_mac(eth->h_source, to->mac_own);
	if (!to->vlan) {
		eth->h_proto = bpf_htons(ethertype);
	} else {
		struct vlan_tag *tag = (void *)(eth + 1);

		eth->h_proto = bpf_htons(ETH_P_8021Q);
		tag->tci = bpf_htons(to->vlan);
		tag->ethertype = bpf_htons(ethertype);
	}
	return true;
}

/* The headers of a tunnel, behind the link header. `gue` is a constant. */
static __always_inline bool write_tunnel4(struct xdp_md *ctx, const struct encap *w,
					  const struct backend *to, bool gue)
{
	__u32 size = sizeof(struct iphdr) + (gue ? sizeof(struct udphdr) : 0);
	struct iphdr *ip = header_at(ctx, w->link & LINK_BYTES_MAX, size);

	if (!ip)
		return false;
	write_outer4(ip, w, to, size + w->length);
	if (gue)
		write_gue((void *)(ip + 1), w);
	return true;
}

static __always_inline bool write_tunnel6(struct xdp_md *ctx, const struct encap *w,
					  const struct backend *to, bool gue)
{
	__u32 size = sizeof(struct ipv6hdr) + (gue ? sizeof(struct udphdr) : 0);
	struct ipv6hdr *ip = header_at(ctx, w->link & LINK_BYTES_MAX, size);

	if (!ip)
		return false;
	write_outer6(ip, w, to, size - sizeof(*ip) + w->length);
	if (gue) {
		write_gue((void *)(ip + 1), w);
		check_gue((void *)(ip + 1), ip, w);
	}
	return true;
}

static __always_inline bool write_tunnel(struct xdp_md *ctx, const struct encap *w,
					 const struct backend *to, __u32 mode)
{
	bool v4 = to->family == 4;

	if (has_mode(SERVICE_GUE) && mode == SERVICE_GUE)
		return v4 ? write_tunnel4(ctx, w, to, true) : write_tunnel6(ctx, w, to, true);
	if (has_mode(SERVICE_IPIP) && mode == SERVICE_IPIP)
		return v4 ? write_tunnel4(ctx, w, to, false) : write_tunnel6(ctx, w, to, false);
	return mode == SERVICE_DR;
}

static __always_inline __u8 outer_proto(const struct packet *pkt, __u32 mode)
{
	return mode == SERVICE_GUE ? IPPROTO_UDP : pkt->family == 4 ? IPPROTO_IPIP : IPPROTO_IPV6;
}

/* Back where it came from, or through another device. */
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

/* What the way to a backend carries: the egress, or less, as long as what a router said is young. */
static __always_inline __u32 way_mtu(const struct service *s, struct backend *to)
{
	__u32 path = *(volatile __u32 *)&to->path, mtu = to->mtu;

	if (likely(!path) || path_mtu(path) >= mtu)
		return mtu;
	if (path_lives(path, pin_time(now_jiffies(), s->pin_shift), s->path_ticks))
		return path_mtu(path);
	if (!config.test)
		__sync_val_compare_and_swap(&to->path, path, 0);
	return mtu;
}

/* What a client is told when the way carries `mtu`: no less than what clients make of it, for a router that was
 * believed must not have cut them off. */
static __always_inline __u32 client_mtu(__u32 family, __u32 mtu, __u32 outer)
{
	__u32 least = family == 4 ? SERVICE_CLIENT_MIN4 : SERVICE_CLIENT_MIN6;

	mtu -= outer;
	return mtu < least ? least : mtu;
}

/* Bytes of a packet that still goes. */
static __always_inline __u32 way_room(const struct packet *pkt, const struct service *s,
				      struct backend *to, __u32 outer)
{
	__u32 room = client_mtu(pkt->family, way_mtu(s, to), outer), egress = to->mtu - outer;

	return room < egress ? room : egress;
}

/* The time is looked at only for packets that the way does not carry, if what was said is true. */
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

/* The kernel measures frames and not packets, and loses without a word what it finds too long. Nearly all
 * frames end with their packet or are of the least size; one whose first buffer ends just there is taken
 * for such a frame. `room`: what the packet may be long. */
static __always_inline bool trim_tail(struct xdp_md *ctx, struct packet *pkt, __u32 room)
{
	__u32 first = ctx->data_end - ctx->data;

	return likely(first == pkt->end) || likely(first <= FRAME_SHORT) ||
	       cut_tail(ctx, pkt, room);
}

/* Ready to be wrapped: sums and hops are done, headroom is there. */
static __always_inline bool encap_begin(struct xdp_md *ctx, struct packet *pkt,
					const struct service *s, const struct backend *to,
					struct encap *w)
{
	__u32 outer = outer_bytes(s->mode, to->family);
	int tos, sum = 0, move;

	if (!trim_tail(ctx, pkt, to->mtu - outer))
		return false;
	checksum_check(ctx, pkt, s);
	if ((tos = take_hop(ctx, pkt)) < 0)
		return false;
	w->tos = tos;
	w->length = pkt->length;
	w->proto = outer_proto(pkt, s->mode);
	w->link = to->vlan ? ETH_HLEN + sizeof(struct vlan_tag) : ETH_HLEN;
	if (has_mode(SERVICE_GUE) && s->mode == SERVICE_GUE && to->family == 6) {
		if ((sum = inner_sum(ctx, pkt)) < 0)
			sum = sum_packet(ctx, pkt->l3_offset, pkt->length);
		if (sum < 0)
			return false;
	}
	w->inner = sum;
	move = (int)pkt->l3_offset - (int)(w->link + outer);
	return !move || !bpf_xdp_adjust_head(ctx, move);
}

/* A reason; PASS_SERVICE: the frame is what leaves, pkt->verdict says how. */
static __always_inline int forward(struct xdp_md *ctx, struct packet *pkt, const struct service *s,
				   struct backend *to, __u64 hash)
{
	int reason = forward_check(ctx, pkt, s, to, outer_bytes(s->mode, to->family));
	__u32 zero = 0;
	struct encap *w = bpf_map_lookup_elem(&encaps, &zero);
	__u16 family = s->mode == SERVICE_DR ? pkt->family : to->family;

	if (reason != GO_ON)
		return reason;
	if (!w)
		return REASON_DROP_INTERNAL;
	w->hash = hash;
	if (!encap_begin(ctx, pkt, s, to, w))
		return REASON_DROP_FORWARD;
	if (!write_link(ctx, to, family == 4 ? ETH_P_IP : ETH_P_IPV6) ||
	    !write_tunnel(ctx, w, to, s->mode))
		return REASON_DROP_FORWARD;
	return send(ctx, pkt, to);
}
