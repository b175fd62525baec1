/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "parse": reads the headers of a frame into struct packet, or returns the reason why it is
 * malformed.
 *
 * Loops over the packet are in global functions: the verifier checks those once, and the common
 * packet (no tag, no extension header) does not pay the call. */
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/limits.h"
#include "xdp/packet.bpf.h"

struct vlan_tag {
	__be16 tci;
	__be16 ethertype; /* of what follows */
};

/* RFC 8200 section 4: the part all extension headers have in common. */
struct ip6_ext {
	__u8 next;
	/* in 8 bytes, not counting the first 8; a reserved byte in the fragment header */
	__u8 length;
	__be16 fragment; /* offset in 8 bytes << 3 | reserved << 1 | more */
	__be32 id;
};

/* <linux/icmp.h> does not compile for BPF; RFC 792, RFC 4443. */
struct icmp_head {
	__u8 type, code;
	__be16 checksum;
	__be32 rest;
};

struct sctp_head {
	__be16 source, dest;
	__be32 tag, checksum;
};

#define ETHERTYPE_QINQ 0x88a8
#define IP4_MORE       0x2000
#define IP4_OFFSET     0x1fff
/* Where a header can begin at most: four tags, an IPv6 header, eight extension headers. */
#define L3_OFFSET_MAX 31
#define L4_OFFSET_MAX 16639

/* A header that ends beyond the linear part: the packet is too short, or it is long and its driver
 * put headers into a second buffer, which Weir does not follow. */
static __noinline int too_short(struct xdp_md *ctx, __u32 need, int reason)
{
	return bpf_xdp_get_buff_len(ctx) >= need ? REASON_DROP_NONLINEAR : reason;
}

/* The header of `size` bytes at `offset`, or NULL. offset has to be bounded for the verifier. */
static __always_inline void *header_at(const struct xdp_md *ctx, __u32 offset, __u32 size)
{
	void *header = (void *)(long)ctx->data + offset;

	/* One register for the check and every access: the verifier does not see that a pointer
	 * that is computed again is the same. */
	asm volatile("" : "+r"(header));
	return header + size > (void *)(long)ctx->data_end ? NULL : header;
}

/* 802.1Q and 802.1ad; 0x9100 of older switches is not a tag for Linux either. */
static __always_inline bool is_vlan(__u16 ethertype)
{
	return ethertype == ETH_P_8021Q || ethertype == ETHERTYPE_QINQ;
}

/* Steps over the tags; the outermost one is kept. */
__noinline int parse_tags(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 offset = ETH_HLEN;

	if (!pkt)
		return REASON_DROP_INTERNAL;
#pragma unroll
	for (int i = 0; i < WEIR_VLAN_TAGS; i++) {
		const struct vlan_tag *tag = header_at(ctx, offset, sizeof(*tag));

		if (!tag)
			return too_short(ctx, offset + sizeof(*tag), REASON_DROP_VLAN_SHORT);
		if (!i)
			pkt->vlan = bpf_ntohs(tag->tci);
		pkt->tags++;
		pkt->ethertype = bpf_ntohs(tag->ethertype);
		offset += sizeof(*tag);
		if (!is_vlan(pkt->ethertype)) {
			pkt->l3_offset = offset;
			return GO_ON;
		}
	}
	return REASON_DROP_VLAN_DEEP;
}

/* Is there an IP packet of `length` bytes at l3_offset? Most packets are linear: then it costs
 * nothing. */
static __always_inline bool frame_holds(struct xdp_md *ctx, const struct packet *pkt, __u32 length)
{
	__u32 end = pkt->l3_offset + length;

	return end <= ctx->data_end - ctx->data || end <= bpf_xdp_get_buff_len(ctx);
}

/* Bytes of the frame from `offset` on if the kernel has merged packets beyond the range of a length
 * field (BIG TCP), which it then leaves zero; 0: this is not such a frame. Defined beside the
 * program (generic.bpf.h). */
__noinline int merged_bytes(struct xdp_md *ctx, __u32 offset);

static __always_inline __u32 merged4(struct xdp_md *ctx, const struct iphdr *ip, __u32 l3)
{
	bool whole = !(ip->frag_off & bpf_htons(IP4_MORE | IP4_OFFSET));

	return ip->protocol == IPPROTO_TCP && whole ? merged_bytes(ctx, l3) : 0;
}

/* RFC 2675 section 2, as the kernel writes it: the only option in its header, then TCP. */
struct ip6_jumbo {
	__u8 next, length, type, size;
	__be32 payload;
};

#define IP6_JUMBO_OPTION 0xc2

/* `payload` is where the IPv6 header ends. Kernels to come leave the option out. */
static __always_inline __u32 merged6(struct xdp_md *ctx, __u8 next, __u32 payload)
{
	const struct ip6_jumbo *jumbo;
	__u32 bytes;

	if (next != IPPROTO_TCP && next != IPPROTO_HOPOPTS)
		return 0;
	bytes = merged_bytes(ctx, payload);
	if (!bytes || next == IPPROTO_TCP)
		return bytes;
	jumbo = header_at(ctx, payload, sizeof(*jumbo));
	if (!jumbo || jumbo->next != IPPROTO_TCP || jumbo->length ||
	    jumbo->type != IP6_JUMBO_OPTION || jumbo->size != sizeof(jumbo->payload))
		return 0;
	return bpf_ntohl(jumbo->payload) == bytes ? bytes : 0;
}

/* `payload` bytes at `offset` of the original packet, with or without further fragments. */
static __always_inline int parse_fragment(struct packet *pkt, __u32 offset, bool more,
					  __u32 payload)
{
	if (!payload || (more && payload % 8) || offset + payload > IP_MAX_BYTES)
		return REASON_DROP_FRAG_LENGTH;
	pkt->fragment = offset ? FRAGMENT_LATER : FRAGMENT_FIRST;
	return GO_ON;
}

static __always_inline int parse_ip4(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	const struct iphdr *ip = header_at(ctx, l3, sizeof(*ip));
	__u32 header, total, fragment;

	if (!ip)
		return too_short(ctx, l3 + sizeof(*ip), REASON_DROP_IP4_SHORT);
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || header < sizeof(*ip))
		return REASON_DROP_IP4_HEADER;
	if (unlikely(!total))
		total = merged4(ctx, ip, l3);
	if (total < header || !frame_holds(ctx, pkt, total))
		return REASON_DROP_IP4_LENGTH;
	pkt->family = 4;
	pkt->src[0] = ip->saddr;
	pkt->dst[0] = ip->daddr;
	pkt->proto = ip->protocol;
	pkt->ttl = ip->ttl;
	pkt->dscp = ip->tos >> 2;
	pkt->length = total;
	pkt->end = l3 + total;
	pkt->l4_offset = l3 + header;
	fragment = bpf_ntohs(ip->frag_off);
	if (likely(!(fragment & (IP4_MORE | IP4_OFFSET))))
		return GO_ON;
	return parse_fragment(pkt, (fragment & IP4_OFFSET) * 8, fragment & IP4_MORE,
			      total - header);
}

static __always_inline bool is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_DSTOPTS;
}

static __always_inline int parse_ip6_fragment(struct packet *pkt, const struct ip6_ext *ext,
					      __u32 offset)
{
	__u32 fragment = bpf_ntohs(ext->fragment);

	if (pkt->fragment_header)
		return REASON_DROP_EXT_ORDER;
	pkt->fragment_header = 1;
	pkt->fragment_at = offset;
	/* Offset 0 and nothing to come is an atomic fragment: a whole packet (RFC 6946). */
	if (!(fragment & ~6))
		return GO_ON;
	return parse_fragment(pkt, fragment & ~7, fragment & 1, pkt->end - offset - sizeof(*ext));
}

/* Walks the extension headers from l4_offset on. AH and ESP end the walk: they are protocols
 * here. */
__noinline int parse_extensions(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 offset;

	if (!pkt)
		return REASON_DROP_INTERNAL;
	offset = pkt->l4_offset;
	for (int i = 0; i < WEIR_IP6_EXT_MAX; i++) {
		const struct ip6_ext *ext;
		int result;

		if (offset > L4_OFFSET_MAX)
			return REASON_DROP_INTERNAL;
		ext = header_at(ctx, offset, sizeof(*ext));
		if (offset + sizeof(*ext) > pkt->end)
			return pkt->fragment ? REASON_DROP_FRAG_SHORT : REASON_DROP_EXT_SHORT;
		if (!ext)
			return REASON_DROP_NONLINEAR;
		if (pkt->proto == IPPROTO_HOPOPTS && i)
			return REASON_DROP_EXT_ORDER;
		if (pkt->proto == IPPROTO_FRAGMENT) {
			result = parse_ip6_fragment(pkt, ext, offset);
			if (result != GO_ON)
				return result;
			offset += sizeof(*ext);
		} else {
			offset += (ext->length + 1) * 8;
		}
		/* RFC 8200 section 4.4: the fourth byte is the number of remaining nodes. */
		if (pkt->proto == IPPROTO_ROUTING && bpf_ntohs(ext->fragment) & 0xff)
			pkt->source_routed = 1;
		if (offset > pkt->end)
			return pkt->fragment ? REASON_DROP_FRAG_SHORT : REASON_DROP_EXT_SHORT;
		pkt->proto = ext->next;
		pkt->l4_offset = offset;
		if (pkt->fragment == FRAGMENT_LATER || !is_extension(pkt->proto))
			return GO_ON;
	}
	return REASON_DROP_EXT_MANY;
}

static __always_inline int parse_ip6(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	const struct ipv6hdr *ip = header_at(ctx, l3, sizeof(*ip));
	__u32 payload, total;

	if (!ip)
		return too_short(ctx, l3 + sizeof(*ip), REASON_DROP_IP6_SHORT);
	if (ip->version != 6)
		return REASON_DROP_IP6_HEADER;
	payload = bpf_ntohs(ip->payload_len);
	if (unlikely(!payload))
		payload = merged6(ctx, ip->nexthdr, l3 + sizeof(*ip));
	total = sizeof(*ip) + payload;
	if ((!payload && ip->nexthdr == IPPROTO_HOPOPTS) || !frame_holds(ctx, pkt, total))
		return REASON_DROP_IP6_LENGTH;
	pkt->family = 6;
	__builtin_memcpy(pkt->src, &ip->saddr, sizeof(pkt->src));
	__builtin_memcpy(pkt->dst, &ip->daddr, sizeof(pkt->dst));
	pkt->proto = ip->nexthdr;
	pkt->ttl = ip->hop_limit;
	pkt->dscp = bpf_ntohs(*(const __be16 *)ip) >> 6 & 0x3f;
	pkt->length = total;
	pkt->end = l3 + total;
	pkt->l4_offset = l3 + sizeof(*ip);
	return unlikely(is_extension(pkt->proto)) ? parse_extensions(ctx, pkt) : GO_ON;
}

/* The transport header of `size` bytes, whole and inside the IP packet; else *ret_reason. A first
 * fragment must contain the whole header (RFC 7112 section 4, applied to IPv4 too). */
static __always_inline void *transport(struct xdp_md *ctx, const struct packet *pkt, __u32 size,
				       int reason, int *ret_reason)
{
	__u32 offset = pkt->l4_offset;
	void *header = NULL;

	if (offset + size > pkt->end)
		*ret_reason = pkt->fragment ? REASON_DROP_FRAG_SHORT : reason;
	else if (offset > L4_OFFSET_MAX || !(header = header_at(ctx, offset, size)))
		*ret_reason = REASON_DROP_NONLINEAR;
	return header;
}

static __always_inline int parse_tcp(struct xdp_md *ctx, struct packet *pkt)
{
	int reason = GO_ON;
	const struct tcphdr *tcp =
		transport(ctx, pkt, sizeof(*tcp), REASON_DROP_TCP_SHORT, &reason);

	if (!tcp)
		return reason;
	if (tcp->doff < 5)
		return REASON_DROP_TCP_OFFSET;
	if (pkt->l4_offset + tcp->doff * 4 > pkt->end)
		return pkt->fragment ? REASON_DROP_FRAG_SHORT : REASON_DROP_TCP_OFFSET;
	pkt->sport = bpf_ntohs(tcp->source);
	pkt->dport = bpf_ntohs(tcp->dest);
	pkt->tcp_flags = ((const __u8 *)tcp)[13];
	pkt->tcp_header = tcp->doff * 4;
	pkt->tcp_seq = tcp->seq;
	pkt->tcp_ack = tcp->ack_seq;
	pkt->has_l4 = 1;
	return GO_ON;
}

static __always_inline int parse_udp(struct xdp_md *ctx, struct packet *pkt)
{
	int reason = GO_ON;
	const struct udphdr *udp =
		transport(ctx, pkt, sizeof(*udp), REASON_DROP_UDP_SHORT, &reason);
	__u32 length;

	if (!udp)
		return reason;
	length = bpf_ntohs(udp->len);
	/* A fragment carries the length of the whole datagram. */
	if (length < sizeof(*udp) || (!pkt->fragment && pkt->l4_offset + length > pkt->end))
		return REASON_DROP_UDP_LENGTH;
	pkt->sport = bpf_ntohs(udp->source);
	pkt->dport = bpf_ntohs(udp->dest);
	pkt->has_l4 = 1;
	return GO_ON;
}

static __always_inline int parse_sctp(struct xdp_md *ctx, struct packet *pkt)
{
	int reason = GO_ON;
	const struct sctp_head *sctp =
		transport(ctx, pkt, sizeof(*sctp), REASON_DROP_SCTP_SHORT, &reason);

	if (!sctp)
		return reason;
	pkt->sport = bpf_ntohs(sctp->source);
	pkt->dport = bpf_ntohs(sctp->dest);
	pkt->sctp_tag = sctp->tag;
	pkt->has_l4 = 1;
	return GO_ON;
}

/* RFC 4861 section 7.1: types 133-136 (137 is a redirect, which a filter may well want to stop),
 * hop limit 255, and RFC 6980: never in a fragment. */
static __always_inline bool is_neighbour(const struct packet *pkt)
{
	return pkt->family == 6 && pkt->icmp_type >= 133 && pkt->icmp_type <= 136 &&
	       pkt->ttl == 255 && !pkt->fragment_header;
}

static __always_inline int parse_icmp(struct xdp_md *ctx, struct packet *pkt, int short_reason)
{
	int reason = GO_ON;
	const struct icmp_head *icmp = transport(ctx, pkt, sizeof(*icmp), short_reason, &reason);

	if (!icmp)
		return reason;
	pkt->icmp_type = icmp->type;
	pkt->icmp_code = icmp->code;
	pkt->has_l4 = 1;
	pkt->neighbour = is_neighbour(pkt);
	return GO_ON;
}

static __always_inline int parse_transport(struct xdp_md *ctx, struct packet *pkt)
{
	if (pkt->fragment == FRAGMENT_LATER)
		return GO_ON;
	if (pkt->proto == IPPROTO_TCP)
		return parse_tcp(ctx, pkt);
	if (pkt->proto == IPPROTO_UDP)
		return parse_udp(ctx, pkt);
	if (pkt->proto == IPPROTO_ICMP && pkt->family == 4)
		return parse_icmp(ctx, pkt, REASON_DROP_ICMP_SHORT);
	if (pkt->proto == IPPROTO_ICMPV6 && pkt->family == 6)
		return parse_icmp(ctx, pkt, REASON_DROP_ICMP6_SHORT);
	if (pkt->proto == IPPROTO_SCTP)
		return parse_sctp(ctx, pkt);
	return GO_ON;
}

/* Every frame: GO_ON with pkt filled (family 0: not IP), or the reason that it is malformed. pkt is
 * zero before; its length stays zero without an IP header. */
static __always_inline int parse(struct xdp_md *ctx, struct packet *pkt)
{
	const struct ethhdr *eth = header_at(ctx, 0, sizeof(*eth));
	int reason;

	if (!eth)
		return REASON_DROP_INTERNAL; /* the kernel hands out no frame under 14 bytes */
	pkt->ethertype = bpf_ntohs(eth->h_proto);
	pkt->l3_offset = ETH_HLEN;
	if (unlikely(is_vlan(pkt->ethertype)) && (reason = parse_tags(ctx, pkt)) != GO_ON)
		return reason;
	if (pkt->ethertype == ETH_P_IP)
		reason = parse_ip4(ctx, pkt);
	else if (pkt->ethertype == ETH_P_IPV6)
		reason = parse_ip6(ctx, pkt);
	else
		return GO_ON;
	return reason == GO_ON ? parse_transport(ctx, pkt) : reason;
}
