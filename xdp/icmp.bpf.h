/* SPDX-License-Identifier: GPL-2.0-only */
/* ICMP for the addresses of services: echo is answered, errors follow the flow that they quote. */
#pragma once

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp/reply.bpf.h"
#include "xdp/service.bpf.h"

/* What an error quotes behind the IP header: eight bytes at least (RFC 792). */
struct quoted_ports {
	__be16 source, dest;
};

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

/* Take over the addresses and the protocol of the quoted packet, client and service exchanged: it is one
 * that came back from the backend. Return how long its IP header is, 0: it is none that can be followed. */
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

/* Makes the packet one of the flow that it quotes. False: it quotes none; the packet may be changed. */
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

/* ICMP that belongs to no service by itself. GO_ON: it follows a flow now, pkt->service says whose; else what
 * becomes of it. */
__noinline int vip_icmp(struct xdp_md *ctx, struct packet *pkt)
{
	if (!pkt || service_find(pkt, true) == NO_SERVICE)
		return pkt ? pkt->passed : REASON_DROP_INTERNAL;
	if (is_echo(pkt))
		return is_answerable(pkt) && is_for_one(ctx) ? answer_echo(ctx, pkt) : pkt->passed;
	if (!is_icmp_error(pkt) || !follow_quote(ctx, pkt))
		return pkt->passed;
	pkt->service = service_find(pkt, false);
	return pkt->service == NO_SERVICE ? pkt->passed : GO_ON;
}
