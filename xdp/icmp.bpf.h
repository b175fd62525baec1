/* SPDX-License-Identifier: GPL-2.0-only */
/* ICMP to the addresses of services: answers echo requests, and relates errors to the flow that
 * they quote. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp/reply.bpf.h"
#include "xdp/service.bpf.h"
#include "xdp/sum.bpf.h"

#define IP4_OPTIONS_MAX 12 /* a packet with more is not answered */
#define IP4_OPTION_END  0
#define IP4_OPTION_NOP  1
#define IP4_OPTION_LSRR 131
#define IP4_OPTION_SSRR 137

/* Quoted bytes of an error after the IP header: at least eight (RFC 792). */
struct quoted_ports {
	__be16 source, dest;
};

/* Global, because a connection asks it once. */
__noinline int is_from_service(struct packet *pkt)
{
	return !pkt || service_find(pkt, BY_SOURCE) != NO_SERVICE;
}

/* A source that no packet from outside has: its answer goes nowhere, or to another service. TCP in
 * the middle of a connection is not looked up, which would cost a call for each of its packets: two
 * services set on one another answer it once, with a reset. */
static __always_inline bool is_martian(struct packet *pkt)
{
	__u32 differs = (pkt->src[0] ^ pkt->dst[0]) | (pkt->src[1] ^ pkt->dst[1]) |
			(pkt->src[2] ^ pkt->dst[2]) | (pkt->src[3] ^ pkt->dst[3]);

	if (!is_answerable(pkt) || !differs)
		return true;
	if (pkt->has_l4 && pkt->proto == IPPROTO_TCP && pkt->tcp_flags & 0x10)
		return false;
	return is_from_service(pkt);
}

static __always_inline bool is_echo(const struct packet *pkt)
{
	return pkt->icmp_type == (pkt->family == 4 ? 8 : 128) && !pkt->icmp_code && !pkt->fragment;
}

/* The frame turned round: addresses, type, checksums. The sum of the addresses stays. */
static __always_inline int answer_echo(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX, l4 = pkt->l4_offset, check;
	struct ethhdr *eth = header_at(ctx, 0, sizeof(*eth));
	struct icmp_head *icmp = l4 > L4_OFFSET_MAX ? NULL : header_at(ctx, l4, sizeof(*icmp));

	if (!eth || !icmp)
		return REASON_DROP_FORWARD;
	swap_macs(eth);
	/* RFC 1624: only the type changes, to 0 or by one. */
	check = (__u16)~icmp->checksum + (__u16)~bpf_htons(icmp->type << 8);
	icmp->type = pkt->family == 4 ? 0 : 129;
	check += bpf_htons(icmp->type << 8);
	icmp->checksum = csum_fold(check);
	/* Nothing but zeros has all ones: RFC 1624 section 3. */
	if (pkt->family == 4 && !icmp->rest && !icmp->checksum)
		icmp->checksum = 0xffff;
	if (pkt->family == 4) {
		struct iphdr *ip = header_at(ctx, l3, sizeof(*ip));

		if (!ip)
			return REASON_DROP_FORWARD;
		check = (__u16)~ip->check + (__u16)~bpf_htons(ip->ttl << 8);
		ip->ttl = REPLY_TTL;
		ip->check = csum_fold(check + bpf_htons(REPLY_TTL << 8));
		ip->saddr = pkt->dst[0];
		ip->daddr = pkt->src[0];
	} else {
		struct ipv6hdr *ip = header_at(ctx, l3, sizeof(*ip));

		if (!ip)
			return REASON_DROP_FORWARD;
		ip->hop_limit = REPLY_TTL;
		__builtin_memcpy(&ip->saddr, pkt->dst, sizeof(ip->saddr));
		__builtin_memcpy(&ip->daddr, pkt->src, sizeof(ip->daddr));
	}
	return REASON_PASS_ECHO;
}

static __always_inline bool same_address6(const void *a, const __u32 *b)
{
	const __u32 *word = a;

	return !((word[0] ^ b[0]) | (word[1] ^ b[1]) | (word[2] ^ b[2]) | (word[3] ^ b[3]));
}

/* Take over the addresses and the protocol of the quoted packet, client and service exchanged: the
 * backend sent it. Return the length of its IP header; 0: the quote cannot be followed. */
static __always_inline __u32 quoted_addresses4(struct xdp_md *ctx, struct packet *pkt, __u32 offset)
{
	const struct iphdr *ip = header_at(ctx, offset, sizeof(*ip));

	if (!ip || ip->version != 4 || ip->ihl < 5 || ip->saddr != pkt->dst[0] ||
	    ip->frag_off & bpf_htons(IP4_OFFSET))
		return 0;
	pkt->src[0] = ip->daddr;
	pkt->proto = ip->protocol;
	return ip->ihl * 4;
}

static __always_inline __u32 quoted_addresses6(struct xdp_md *ctx, struct packet *pkt, __u32 offset)
{
	const struct ipv6hdr *ip = header_at(ctx, offset, sizeof(*ip));

	if (!ip || ip->version != 6 || !same_address6(&ip->saddr, pkt->dst))
		return 0;
	__builtin_memcpy(pkt->src, &ip->daddr, sizeof(pkt->src));
	pkt->proto = ip->nexthdr;
	return sizeof(*ip);
}

/* Makes the packet one of the flow that it quotes. False: it quotes none; the packet may be
 * changed. */
static __always_inline bool follow_quote(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 offset = pkt->l4_offset + sizeof(struct icmp_head), header;
	__u32 size = pkt->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	const struct quoted_ports *ports;

	if (pkt->fragment || offset > L4_OFFSET_MAX || offset + size > pkt->end)
		return false;
	header = pkt->family == 4 ? quoted_addresses4(ctx, pkt, offset)
				  : quoted_addresses6(ctx, pkt, offset);
	if (!header)
		return false;
	offset += header;
	if (!has_ports(pkt) || offset > L4_OFFSET_MAX || offset + 8 > pkt->end ||
	    !(ports = header_at(ctx, offset, sizeof(*ports))))
		return false;
	pkt->sport = bpf_ntohs(ports->dest);
	pkt->dport = bpf_ntohs(ports->source);
	pkt->quoted = 1;
	return true;
}

/* Is there a source route in the options of IPv4 whose end is not reached? The packet is on its way
 * then, and its answer would be sent around (RFC 1122 section 3.2.2.6). */
__noinline int is_on_the_way4(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 at = sizeof(struct iphdr), end;

	if (!pkt)
		return true;
	end = pkt->l4_offset - pkt->l3_offset;
	for (int i = 0; i < IP4_OPTIONS_MAX; i++) {
		const __u8 *option;
		__u32 step;

		/* The verifier forgets the path: the paths of each turn meet. */
		asm volatile("" : "+r"(at));
		at &= 63;
		if (at >= end)
			return false;
		if (!(option = header_at(ctx, (pkt->l3_offset & L3_OFFSET_MAX) + at, 3)))
			return true;
		if (option[0] == IP4_OPTION_LSRR || option[0] == IP4_OPTION_SSRR)
			return option[2] <= option[1];
		if (option[0] == IP4_OPTION_END)
			return false;
		step = option[0] == IP4_OPTION_NOP ? 1 : option[1];
		if (step > 63 - at)
			return true;
		at += step;
	}
	return at < end;
}

/* Answers an echo request to a VIP, within the budget. A source-routed packet that is still on its
 * way is passed up: the host knows what to do with it. */
static __always_inline int vip_echo(struct xdp_md *ctx, struct packet *pkt)
{
	bool options = pkt->family == 4 && pkt->l4_offset != pkt->l3_offset + sizeof(struct iphdr);

	if (pkt->source_routed || (options && is_on_the_way4(ctx, pkt)))
		return pkt->passed;
	if (is_from_here(pkt) || !checksum_holds(ctx, pkt) ||
	    (!is_test() && !reply_allowed(pkt, REPLY_ECHO)))
		return REASON_DROP_ECHO;
	return answer_echo(ctx, pkt);
}

/* ICMP that belongs to no service by itself. GO_ON: it now follows a flow of pkt->service; else its
 * reason. */
__noinline int vip_icmp(struct xdp_md *ctx, struct packet *pkt)
{
	if (!pkt || service_find(pkt, BY_DESTINATION) == NO_SERVICE)
		return pkt ? pkt->passed : REASON_DROP_INTERNAL;
	if (is_martian(pkt))
		return REASON_DROP_MARTIAN;
	if (is_echo(pkt))
		return vip_echo(ctx, pkt);
	if (!is_icmp_error(pkt) || !follow_quote(ctx, pkt))
		return pkt->passed;
	pkt->service = service_find(pkt, BY_PACKET);
	return pkt->service == NO_SERVICE ? pkt->passed : GO_ON;
}
