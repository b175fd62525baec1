/* SPDX-License-Identifier: GPL-2.0-only */
/* ICMP "too big" about tunnel packets, from routers on the path to backends (RFC 1191, RFC 8201).
 *
 * The path MTU of the backend is lowered, and the client gets an error from its VIP, as RFC 2003
 * section 5 and RFC 2473 section 8 require.
 *
 * Anyone can send such an error, so it must quote a packet that Weir sends: from the outer source
 * of a backend, to that backend, in the mode of a service, for a VIP and ports of that service,
 * from the port of GUE that its hash gives. A size is not believed if it is not below the size of
 * the packet or the MTU of the egress, or for a second time within a tick, nor if it leaves less
 * than SERVICE_INNER_MIN bytes inside the tunnel, unless notices about several flows agree
 * (path-agree.bpf.h). A quote that ends before the ports (RFC 792 asks for eight bytes) only lowers
 * the path MTU. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "xdp/forward.bpf.h"
#include "xdp/icmp.bpf.h"
#include "xdp/path-agree.bpf.h"
#include "xdp/pins.bpf.h"

/* The quote of a tunnel packet. */
struct path_quote {
	struct tunnel_key key; /* whom the packet was for */
	__u32 source[4];
	__u32 mtu;    /* MTU of the narrow link, from the router */
	__u32 length; /* length of the packet that did not fit */
	__u32 outer;  /* bytes of headers in front of the packet inside */
	__u32 inside; /* where that begins in the frame */
	__be16 port;  /* that GUE was sent from */
	__u8 mode;
	__u8 has_addresses; /* below: if the quote has them */
	struct packet inner;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_quote);
} pathquotes SEC(".maps");

static __always_inline struct path_quote *path_quote_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&pathquotes, &zero);
}

static __always_inline bool has_tunnels(void)
{
#define HAS_TUNNEL(symbol, ...) || has_mode(symbol)
	return false WORDS_OF_TUNNELS(HAS_TUNNEL);
#undef HAS_TUNNEL
}

/* The code has no meaning in IPv6 (RFC 4443 section 3.2). */
static __always_inline bool is_too_big(const struct packet *pkt)
{
	if (pkt->fragment)
		return false;
	return pkt->family == 4 ? pkt->icmp_type == 3 && pkt->icmp_code == 4 : pkt->icmp_type == 2;
}

/* `size` bytes of the quote at `offset`, or NULL. */
static __always_inline const void *quoted_at(struct xdp_md *ctx, const struct packet *pkt,
					     __u32 offset, __u32 size)
{
	/* One register: kernel 6.1 does not see that another one has the same bounds. */
	asm volatile("" : "+r"(offset));
	return offset > L4_OFFSET_MAX || offset + size > pkt->end ? NULL
								  : header_at(ctx, offset, size);
}

/* The outer header, as write_outer4() and write_outer6() make it; the protocol in it, 0: it is not
 * ours. */
static __always_inline __u8 quoted_outer4(struct xdp_md *ctx, const struct packet *pkt,
					  struct path_quote *q)
{
	const struct iphdr *ip = quoted_at(ctx, pkt, q->inside, sizeof(*ip));

	if (!ip || *(const __u8 *)ip != 0x45 || ip->frag_off != bpf_htons(0x4000))
		return 0;
	q->length = bpf_ntohs(ip->tot_len);
	q->source[0] = ip->saddr;
	q->key.addr[0] = ip->daddr;
	q->outer = sizeof(*ip);
	return ip->protocol;
}

static __always_inline __u8 quoted_outer6(struct xdp_md *ctx, const struct packet *pkt,
					  struct path_quote *q)
{
	const struct ipv6hdr *ip = quoted_at(ctx, pkt, q->inside, sizeof(*ip));

	if (!ip || ip->version != 6)
		return 0;
	q->length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	__builtin_memcpy(q->source, &ip->saddr, sizeof(q->source));
	__builtin_memcpy(q->key.addr, &ip->daddr, sizeof(q->key.addr));
	q->outer = sizeof(*ip);
	return ip->nexthdr;
}

/* The headers of the tunnel. False: it is not one of ours. */
static __always_inline bool quoted_tunnel(struct xdp_md *ctx, const struct packet *pkt,
					  struct path_quote *q)
{
	const struct udphdr *udp;
	__u8 proto;

	q->inside = pkt->l4_offset + sizeof(struct icmp_head);
	proto = pkt->family == 4 ? quoted_outer4(ctx, pkt, q) : quoted_outer6(ctx, pkt, q);
	q->inside += q->outer;
	if (proto == IPPROTO_IPIP || proto == IPPROTO_IPV6) {
		q->mode = SERVICE_IPIP;
		q->inner.family = proto == IPPROTO_IPIP ? 4 : 6;
		return true;
	}
	if (proto != IPPROTO_UDP || !(udp = quoted_at(ctx, pkt, q->inside, sizeof(*udp))))
		return false;
	q->mode = SERVICE_GUE;
	q->port = udp->source;
	q->outer += sizeof(*udp);
	q->inside += sizeof(*udp);
	return udp->dest == bpf_htons(DECAP_PORT) && bpf_ntohs(udp->source) >= GUE_PORT_FIRST &&
	       bpf_ntohs(udp->len) + q->outer == q->length + sizeof(*udp);
}

/* Addresses and protocol of the packet inside; how long its header is, 0: it is not quoted, or
 * there is something between it and the ports. */
static __always_inline __u32 quoted_inner4(struct xdp_md *ctx, const struct packet *pkt,
					   struct path_quote *q)
{
	const struct iphdr *ip = quoted_at(ctx, pkt, q->inside, sizeof(*ip));

	if (!ip)
		return 0;
	q->inner.src[0] = ip->saddr;
	q->inner.dst[0] = ip->daddr;
	q->inner.proto = ip->protocol;
	q->has_addresses = 1;
	if (ip->frag_off & bpf_htons(IP4_OFFSET))
		return 0;
	q->inner.fragment = ip->frag_off & bpf_htons(IP4_MORE) ? FRAGMENT_FIRST : FRAGMENT_NONE;
	return ip->ihl * 4;
}

static __always_inline __u32 quoted_inner6(struct xdp_md *ctx, const struct packet *pkt,
					   struct path_quote *q)
{
	const struct ipv6hdr *ip = quoted_at(ctx, pkt, q->inside, sizeof(*ip));

	if (!ip)
		return 0;
	__builtin_memcpy(q->inner.src, &ip->saddr, sizeof(q->inner.src));
	__builtin_memcpy(q->inner.dst, &ip->daddr, sizeof(q->inner.dst));
	q->inner.proto = ip->nexthdr;
	q->has_addresses = 1;
	return sizeof(*ip);
}

/* The first inner bytes have the version and the length: a short quote has no more. */
static __always_inline bool quoted_begin(struct xdp_md *ctx, const struct packet *pkt,
					 struct path_quote *q)
{
	const __be16 *word = quoted_at(ctx, pkt, q->inside, 8);
	__u32 length;

	if (!word) /* GUE has its ports instead */
		return q->mode == SERVICE_GUE;
	if (q->mode == SERVICE_GUE)
		q->inner.family = *(const __u8 *)word >> 4;
	length = q->inner.family == 4 ? bpf_ntohs(word[1])
				      : bpf_ntohs(word[2]) + sizeof(struct ipv6hdr);
	return *(const __u8 *)word >> 4 == q->inner.family &&
	       (q->inner.family == 4 || q->inner.family == 6) && length + q->outer == q->length;
}

/* The quoted part of the inner packet. False: no such packet is possible. */
static __always_inline bool quoted_inner(struct xdp_md *ctx, const struct packet *pkt,
					 struct path_quote *q)
{
	const struct quoted_ports *ports;
	__u32 header, offset;

	if (!quoted_begin(ctx, pkt, q))
		return false;
	header = q->inner.family == 4 ? quoted_inner4(ctx, pkt, q) : quoted_inner6(ctx, pkt, q);
	if (q->has_addresses && q->inner.family == 4 && header && header < sizeof(struct iphdr))
		return false;
	offset = q->inside + header;
	q->inner.l3_offset = pkt->l3_offset;
	q->inner.l4_offset = pkt->l3_offset + header;
	q->inner.length = pkt->end - q->inside;
	q->inner.end = q->inner.l3_offset + q->inner.length;
	q->inner.has_l4 = 1;
	if (!header || !has_ports(&q->inner) || !(ports = quoted_at(ctx, pkt, offset, 8))) {
		q->inner.has_l4 = 0;
		return true;
	}
	q->inner.sport = bpf_ntohs(ports->source);
	q->inner.dport = bpf_ntohs(ports->dest);
	return true;
}

/* The notice and what it quotes. False: it is not about a tunnel packet. */
static __always_inline bool quoted_take(struct xdp_md *ctx, const struct packet *pkt,
					struct path_quote *q)
{
	const struct icmp_head *icmp = quoted_at(ctx, pkt, pkt->l4_offset, sizeof(*icmp));

	*q = (struct path_quote){.key.family = pkt->family};
	if (!icmp)
		return false;
	/* In IPv4 the upper half may have a length: RFC 4884 section 4.1. */
	q->mtu = bpf_ntohl(icmp->rest) & (pkt->family == 4 ? 0xffff : ~0u);
	return quoted_tunnel(ctx, pkt, q) && quoted_inner(ctx, pkt, q) &&
	       !((q->source[0] ^ pkt->dst[0]) | (q->source[1] ^ pkt->dst[1]) |
		 (q->source[2] ^ pkt->dst[2]) | (q->source[3] ^ pkt->dst[3]));
}

/* Could the source be one that we give packets to this backend? With `hash`, where the flow is
 * known: is it the one that we gave this packet? */
static __always_inline bool source_is_ours(const struct path_quote *q, const struct backend *to,
					   bool known, __u64 hash)
{
	__u32 want[4] = {}, drawn;

	if (to->family != q->key.family)
		return false;
	drawn = known ? 0 : to->family == 4 ? source_drawn(to, 32) : source_drawn(to, 128);
	if (!known)
		hash = 0;
	if (to->family == 4) {
		want[0] = outer_source4(hash, to);
		return !((q->source[0] ^ want[0]) & ~drawn);
	}
	outer_source6(hash, to, want);
	return !((q->source[0] ^ want[0]) | (q->source[1] ^ want[1]) | (q->source[2] ^ want[2]) |
		 ((q->source[3] ^ want[3]) & ~drawn));
}

static __always_inline void path_tally(const struct service *s, __u32 backend,
				       enum service_event event)
{
	service_tally(s->id, event);
	service_tally(backend, event);
}

/* The least that one notice is believed: so much still fits inside the tunnel. */
static __always_inline __u32 path_least(const struct path_quote *q)
{
	return SERVICE_INNER_MIN + q->outer;
}

/* Believes the router, or not: then 0. Returns what the way carries from now on. A packet that is
 * quoted may be longer than any that we sent: routers merge packets of a flow (GRO). */
__noinline int path_lower(struct path_quote *q, __u32 service, __u32 backend, __u32 least)
{
	const struct service *s = service_at(service);
	struct backend *to = backend_at(backend);
	__u32 time, old, now;

	if (!q || !s || !to)
		return 0;
	time = pin_time(now_jiffies(), s->pin_shift);
	now = way_mtu(s, to);
	old = *(volatile __u32 *)&to->path;
	if ((q->mtu < least && q->mtu < now) || q->length <= q->mtu || q->mtu >= to->mtu ||
	    (q->mtu < now && path_lives(old, time, 0))) {
		path_tally(s, backend, SERVICE_PATH_REFUSED);
		return 0;
	}
	if (q->mtu >= now)
		return now;
	if (is_test())
		return q->mtu;
	if (__sync_val_compare_and_swap(&to->path, old, path_pack(q->mtu, time)) == old)
		path_tally(s, backend, SERVICE_PATH_LEARNED);
	return q->mtu;
}

/* Lowers the path MTU of the backend in one of the services that have it. */
__noinline int path_lower_one(struct path_quote *q, __u32 service, __u32 backend)
{
	const struct service *s = service_at(service);
	const struct backend *to = backend_at(backend);

	if (!q || !s || !to || s->mode != q->mode || !source_is_ours(q, to, false, 0))
		return 0;
	return path_lower(q, service, backend, path_least(q));
}

/* The same for a quote that shows its flow. */
static __always_inline int path_lower_flow(struct path_quote *q, const struct service *s,
					   __u32 backend)
{
	__u32 service = q->key.service, least = path_least(q);

	if (unlikely(q->mtu < least && q->mtu >= path_least_ever(q->key.family) &&
		     q->length > q->mtu)) {
		__u32 agreed = path_agree(service, backend, hash_of_tuple(s, &q->inner),
					  q->mtu << PATH_MTU_SHIFT | q->inner.proto);

		if (agreed)
			q->mtu = least = agreed;
	}
	return path_lower(q, service, backend, least);
}

/* For a quote that does not tell the service: in all that have this backend. */
__noinline int path_lower_all(struct path_quote *q)
{
	struct tunnel_key key;
	const struct tunnel_end *end;

	if (!q)
		return 0;
	key = q->key;
	key.service = TUNNEL_FIRST;
	end = bpf_map_lookup_elem(&tunnels, &key);
	for (int n = 0; n < SERVICE_SAME_MAX && end && end->next != TUNNEL_FIRST; n++) {
		key.service = end->next;
		end = bpf_map_lookup_elem(&tunnels, &key);
		if (end)
			path_lower_one(q, key.service, end->backend);
	}
	return 0;
}

/* The number of the backend of the inner packet; BACKEND_NONE: the quote is not one of our
 * packets. */
static __always_inline __u32 path_backend(struct path_quote *q, const struct service *s)
{
	const struct tunnel_end *end = bpf_map_lookup_elem(&tunnels, &q->key);
	__u64 hash = s->hash == SERVICE_HASH_SOURCE ? hash_of_source(s, &q->inner)
						    : hash_of_tuple(s, &q->inner);
	const struct backend *to = end ? backend_at(end->backend) : NULL;

	if (!to)
		return BACKEND_NONE;
	if (s->mode == q->mode && source_is_ours(q, to, true, hash) &&
	    (q->mode != SERVICE_GUE || q->port == gue_port(hash)))
		return end->backend;
	path_tally(s, end->backend, SERVICE_PATH_REFUSED);
	return BACKEND_NONE;
}

/* The frame without all that is in front of the packet inside. False: it may be changed. */
static __always_inline bool path_strip(struct xdp_md *ctx, const struct packet *pkt,
				       const struct path_quote *q)
{
	__u32 l2 = BOUND_LENGTH(pkt->l3_offset, LINK_MASK + 1);
	__be16 ethertype = bpf_htons(q->inner.family == 4 ? ETH_P_IP : ETH_P_IPV6);
	__u8 link[32] = {};

	return !bpf_xdp_load_bytes(ctx, 0, link, l2) &&
	       !bpf_xdp_adjust_head(ctx, (int)q->inside - (int)pkt->l3_offset) &&
	       !bpf_xdp_store_bytes(ctx, 0, link, l2) &&
	       !bpf_xdp_store_bytes(ctx, l2 - sizeof(ethertype), &ethertype, sizeof(ethertype));
}

/* The notice is rewritten for the client and sent back to the router that sent it, which also
 * routes the answers of backends. */
__noinline int path_tell(struct xdp_md *ctx, struct packet *pkt, __u32 mtu)
{
	struct path_quote *q = path_quote_get();
	struct icmp_head error = {};

	if (!pkt || !q)
		return REASON_DROP_INTERNAL;
	if (!may_reply(ctx, &q->inner, REPLY_TOO_BIG))
		return REASON_DROP_TOO_BIG;
	error.rest = bpf_htonl(client_mtu(q->inner.family, mtu, q->outer));
	error.type = q->inner.family == 4 ? 3 : 2;
	error.code = q->inner.family == 4 ? 4 : 0;
	return path_strip(ctx, pkt, q) && send_error(ctx, &q->inner, &error) ? REASON_PASS_PATH_MTU
									     : REASON_DROP_FORWARD;
}

/* The MTU for the client; 0: no error is sent, because the quote is not of our packet, or its
 * client cannot be found. */
__noinline int path_learn(struct xdp_md *ctx, struct packet *pkt)
{
	struct path_quote *q = path_quote_get();
	const struct service *s;
	__u32 backend;

	if (!pkt || !q || !quoted_take(ctx, pkt, q) || !checksum_holds(ctx, pkt))
		return 0;
	if (!q->inner.has_l4) {
		if (!q->has_addresses || service_find(&q->inner, BY_DESTINATION) != NO_SERVICE)
			path_lower_all(q);
		return 0;
	}
	q->key.service = service_find(&q->inner, BY_PACKET);
	s = service_at(q->key.service);
	backend = s ? path_backend(q, s) : BACKEND_NONE;
	return backend == BACKEND_NONE ? 0 : path_lower_flow(q, s, backend);
}

/* Decides a "too big" to one of our addresses; GO_ON: it is treated like other packets. */
static __always_inline int path_notice(struct xdp_md *ctx, struct packet *pkt)
{
	int mtu = path_learn(ctx, pkt);

	return mtu ? path_tell(ctx, pkt, mtu) : GO_ON;
}
