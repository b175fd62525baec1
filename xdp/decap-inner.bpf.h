/* SPDX-License-Identifier: GPL-2.0-only */
/* Stages of decapsulation: find the inner packet, check it, merge its ECN field, and remove the
 * outer headers.
 *
 * Each returns GO_ON or the counter of the packet. */
#pragma once

#include "common/decap.h"
#include "xdp/csum.bpf.h"
#include "xdp/parse.bpf.h"

struct inner {
	__u32 offset; /* in the frame */
	__u32 room;   /* bytes that the outer packet has from there on */
	__u8 family;  /* 4 or 6 */
	__u8 gue;
	__u32 dst[4]; /* network order; IPv4 in [0], the rest zero */
};

/* GUE variant 0 (draft-ietf-intarea-gue section 3.1). */
struct gue_head {
	__u8 first; /* version 2, control 1, length of extensions 5 */
	__u8 proto;
	__be16 flags;
};

#define GUE_DIRECT 1 /* variant 1: the IP header itself, whose version begins with these two bits */

#define ECN_BITS 3
#define ECN_NOT  0
#define ECN_ECT1 1
#define ECN_ECT0 2
#define ECN_CE   3

/* A routing header that is not used up: this host is on the packet's way, not its end. */
__noinline int decap_routed(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 offset, end;
	const struct ipv6hdr *ip;
	__u8 next;

	if (!pkt)
		return 1;
	offset = pkt->l3_offset & L3_OFFSET_MAX;
	end = pkt->l4_offset;
	ip = header_at(ctx, offset, sizeof(*ip));
	if (!ip)
		return 1;
	next = ip->nexthdr;
	offset += sizeof(*ip);
	for (int i = 0; i < WEIR_IP6_EXT_MAX && offset < end; i++) {
		const struct ip6_ext *ext;

		if (offset > L4_OFFSET_MAX || !(ext = header_at(ctx, offset, sizeof(*ext))))
			return 1;
		if (next == IPPROTO_ROUTING && ((const __u8 *)ext)[3])
			return 1;
		offset += next == IPPROTO_FRAGMENT ? sizeof(*ext) : (ext->length + 1) * 8;
		next = ext->next;
	}
	return 0;
}

/* The payload of UDP. The checksum is not verified: the inner packet has its own. */
static __always_inline int find_in_gue(struct xdp_md *ctx, const struct packet *pkt,
				       struct inner *in)
{
	__u32 offset = pkt->l4_offset;
	const struct udphdr *udp;
	const __u8 *first;
	const struct gue_head *gue;

	if (offset > L4_OFFSET_MAX || !(udp = header_at(ctx, offset, sizeof(*udp))))
		return DECAP_DROP_INTERNAL;
	in->gue = 1;
	in->offset = offset + sizeof(*udp);
	in->room = bpf_ntohs(udp->len) - sizeof(*udp);
	if (!in->room || !(first = header_at(ctx, offset + sizeof(*udp), 1)))
		return DECAP_PASS_GUE_OTHER;
	if (*first >> 6 == GUE_DIRECT) {
		in->family = *first >> 4;
		return in->family == 4 || in->family == 6 ? GO_ON : DECAP_DROP_VERSION;
	}
	if (*first || in->room < sizeof(*gue) ||
	    !(gue = header_at(ctx, offset + sizeof(*udp), sizeof(*gue))))
		return DECAP_PASS_GUE_OTHER;
	if (gue->flags || (gue->proto != IPPROTO_IPIP && gue->proto != IPPROTO_IPV6))
		return DECAP_PASS_GUE_OTHER;
	in->family = gue->proto == IPPROTO_IPIP ? 4 : 6;
	in->offset += sizeof(*gue);
	in->room -= sizeof(*gue);
	return GO_ON;
}

static __always_inline int find_inner(struct xdp_md *ctx, const struct packet *pkt,
				      struct inner *in)
{
	if (pkt->proto == IPPROTO_UDP)
		return find_in_gue(ctx, pkt, in);
	in->family = pkt->proto == IPPROTO_IPIP ? 4 : 6;
	in->offset = pkt->l4_offset;
	in->room = pkt->end - pkt->l4_offset;
	return GO_ON;
}

/* The inner header, if it is in the packet and in its first buffer. */
static __always_inline void *inner_header(const struct xdp_md *ctx, const struct inner *in,
					  __u32 size, int *ret_reason)
{
	__u32 offset = in->offset;
	void *header = NULL;

	if (in->room < size)
		*ret_reason = DECAP_DROP_SHORT;
	else if (offset > L4_OFFSET_MAX || !(header = header_at(ctx, offset, size)))
		*ret_reason = DECAP_DROP_SPLIT;
	return header;
}

static __always_inline int check_inner4(const struct iphdr *ip, __u32 room)
{
	__u32 header = ip->ihl * 4, total = bpf_ntohs(ip->tot_len);

	if (ip->version != 4)
		return DECAP_DROP_VERSION;
	if (header < sizeof(*ip))
		return DECAP_DROP_HEADER;
	return total < header || total > room ? DECAP_DROP_LENGTH : GO_ON;
}

static __always_inline int check_inner6(const struct ipv6hdr *ip, __u32 room)
{
	__u32 payload = bpf_ntohs(ip->payload_len);

	if (ip->version != 6)
		return DECAP_DROP_VERSION;
	if (payload > room - sizeof(*ip) || (!payload && ip->nexthdr == IPPROTO_HOPOPTS))
		return DECAP_DROP_LENGTH;
	return GO_ON;
}

/* RFC 6040 section 4.2: what the inner field becomes; -1: the packet has to go. */
static __always_inline int ecn_merge(__u8 outer, __u8 inner)
{
	if (outer == ECN_CE)
		return inner == ECN_NOT ? -1 : ECN_CE;
	return outer == ECN_ECT1 && inner == ECN_ECT0 ? ECN_ECT1 : inner;
}

/* The type-of-service byte, or the traffic class, of the outer header. */
static __always_inline int outer_ecn(struct xdp_md *ctx, const struct packet *pkt, __u8 *ret)
{
	const __be16 *word = header_at(ctx, pkt->l3_offset & L3_OFFSET_MAX, sizeof(*word));

	if (!word)
		return DECAP_DROP_INTERNAL;
	*ret = bpf_ntohs(*word) >> (pkt->family == 4 ? 0 : 4) & ECN_BITS;
	return GO_ON;
}

/* RFC 1624: the checksum follows the one word that changes. */
static __always_inline int write_ecn4(struct iphdr *ip, __u8 outer)
{
	int ecn = ecn_merge(outer, ip->tos & ECN_BITS);
	__be16 before = *(__be16 *)ip;

	if (ecn < 0)
		return DECAP_DROP_ECN;
	if (ecn == (ip->tos & ECN_BITS))
		return GO_ON;
	ip->tos = (ip->tos & ~ECN_BITS) | ecn;
	ip->check = csum_fold((__u64)(__u16)~ip->check + (__u16)~before + *(__be16 *)ip);
	return GO_ON;
}

static __always_inline int write_ecn6(struct ipv6hdr *ip, __u8 outer)
{
	__u8 *second = (__u8 *)ip + 1; /* half traffic class, half flow label */
	int ecn = ecn_merge(outer, *second >> 4 & ECN_BITS);

	if (ecn < 0)
		return DECAP_DROP_ECN;
	*second = (*second & ~(ECN_BITS << 4)) | ecn << 4;
	return GO_ON;
}

/* Is the inner packet whole? Then its ECN field is merged, and in->dst is known. */
static __always_inline int check_inner(struct xdp_md *ctx, const struct packet *pkt,
				       struct inner *in)
{
	int reason = GO_ON;
	__u8 ecn = 0;
	struct ipv6hdr *ip6;
	struct iphdr *ip4;

	if ((reason = outer_ecn(ctx, pkt, &ecn)) != GO_ON)
		return reason;
	if (in->family == 4) {
		if (!(ip4 = inner_header(ctx, in, sizeof(*ip4), &reason)))
			return reason;
		in->dst[0] = ip4->daddr;
		reason = check_inner4(ip4, in->room);
		return reason == GO_ON ? write_ecn4(ip4, ecn) : reason;
	}
	if (!(ip6 = inner_header(ctx, in, sizeof(*ip6), &reason)))
		return reason;
	__builtin_memcpy(in->dst, &ip6->daddr, sizeof(in->dst));
	reason = check_inner6(ip6, in->room);
	return reason == GO_ON ? write_ecn6(ip6, ecn) : reason;
}

#define MAC_WORDS 3
#define L2_WORDS  (MAC_WORDS + WEIR_VLAN_TAGS)

/* MAC addresses and tags, in words of four bytes. */
struct l2 {
	__u32 word[L2_WORDS];
};

static __always_inline int l2_read(const struct xdp_md *ctx, struct l2 *l2, int words)
{
	const __u32 *word;

#pragma unroll
	for (int i = 0; i < L2_WORDS; i++)
		if (i < words) {
			if (!(word = header_at(ctx, i * 4, sizeof(*word))))
				return DECAP_DROP_INTERNAL;
			l2->word[i] = *word;
		}
	return GO_ON;
}

static __always_inline int l2_write(const struct xdp_md *ctx, const struct l2 *l2, int words)
{
	__u32 *word;

#pragma unroll
	for (int i = 0; i < L2_WORDS; i++)
		if (i < words) {
			if (!(word = header_at(ctx, i * 4, sizeof(*word))))
				return DECAP_DROP_INTERNAL;
			*word = l2->word[i];
		}
	return GO_ON;
}

/* MAC addresses and all tags move up to the inner packet, followed by its ethertype. */
static __always_inline int strip(struct xdp_md *ctx, const struct packet *pkt,
				 const struct inner *in)
{
	int reason, words = MAC_WORDS + pkt->tags;
	struct l2 l2 = {};
	__be16 *type;

	if ((reason = l2_read(ctx, &l2, words)) != GO_ON)
		return reason;
	if (bpf_xdp_adjust_head(ctx, in->offset - pkt->l3_offset))
		return DECAP_DROP_INTERNAL;
	if ((reason = l2_write(ctx, &l2, words)) != GO_ON)
		return reason;
	type = header_at(ctx, words * 4 & L3_OFFSET_MAX, sizeof(*type));
	if (!type)
		return DECAP_DROP_INTERNAL;
	*type = bpf_htons(in->family == 4 ? ETH_P_IP : ETH_P_IPV6);
	return GO_ON;
}

static __always_inline int stripped_reason(const struct packet *pkt, const struct inner *in)
{
	if (in->gue)
		return DECAP_STRIP_GUE;
	if (pkt->family == 4)
		return in->family == 4 ? DECAP_STRIP_4IN4 : DECAP_STRIP_6IN4;
	return in->family == 4 ? DECAP_STRIP_4IN6 : DECAP_STRIP_6IN6;
}
