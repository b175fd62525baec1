/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides packets that no rule decided: the essentials, then the default.
 *
 * Under `default drop` the essentials are the packets that a host needs to keep its addresses and
 * routes. */
#pragma once

#include "xdp/tables.bpf.h"
#include "xdp/transit.bpf.h"

/* Multicast listener discovery: RFC 2710, RFC 3810, RFC 4286. */
static __always_inline bool is_mld(const struct packet *pkt)
{
	return (pkt->icmp_type >= 130 && pkt->icmp_type <= 132) || pkt->icmp_type == 143;
}

/* ICMP errors: v4 destination unreachable, time exceeded, parameter problem; v6 types 1-4. */
static __always_inline bool is_icmp_notice(const struct packet *pkt)
{
	if (pkt->family == 6)
		return pkt->icmp_type >= 1 && pkt->icmp_type <= 4;
	return pkt->icmp_type == 3 || pkt->icmp_type == 11 || pkt->icmp_type == 12;
}

/* UDP from a DHCP server to a client: RFC 2131, RFC 8415. Ports in host order. */
static __always_inline bool is_dhcp_ports(int family, __u32 sport, __u32 dport)
{
	return family == 4 ? sport == 67 && dport == 68 : sport == 547 && dport == 546;
}

/* Answers of a DHCP server. */
static __always_inline bool is_dhcp(const struct packet *pkt)
{
	if (pkt->proto != IPPROTO_UDP)
		return false;
	return is_dhcp_ports(pkt->family, pkt->sport, pkt->dport) &&
	       (pkt->family == 4 || is_link_local6(pkt->src));
}

/* The reason that an essential packet passes for, or GO_ON. */
static __always_inline int essential(const struct packet *pkt)
{
	bool icmp = pkt->proto == (pkt->family == 6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

	if (!pkt->family)
		return pkt->ethertype == ETH_P_ARP ? REASON_PASS_ARP : GO_ON;
	if (!pkt->has_l4)
		return GO_ON;
	if (icmp && is_icmp_notice(pkt))
		return REASON_PASS_ICMP_ERROR;
	if (icmp && pkt->family == 6 && is_mld(pkt))
		return REASON_PASS_MLD;
	return is_dhcp(pkt) ? REASON_PASS_DHCP : GO_ON;
}

/* A packet in transit is not essential. An error to the address of a service may be for a backend,
 * which the balancer decides. */
static __always_inline int essential_here(struct xdp_md *ctx, struct packet *pkt)
{
	int reason = essential(pkt);

	if (reason == GO_ON || reason == REASON_PASS_ARP || !is_in_transit(ctx, pkt))
		return reason;
	if (!policy.services || reason != REASON_PASS_ICMP_ERROR)
		return GO_ON;
	pkt->only_service = 1;
	return reason;
}

/* If the policy does not apply, none of its defaults has a bit. */
static __always_inline int default_verdict(struct xdp_md *ctx, struct packet *pkt)
{
	if (MARKER(MARK_DEFAULT_DROP) >> (pkt->iface & 63) & 1) {
		int reason = GO_ON;

		/* Neighbour discovery is essential, and no default touches it even with them
		 * off. */
		if (pkt->neighbour)
			return REASON_PASS_ND;
		if (!policy.essentials_filter)
			reason = essential_here(ctx, pkt);
		return reason != GO_ON ? reason : REASON_DROP_DEFAULT;
	}
	if (!pkt->family)
		return REASON_PASS_NOT_IP;
	return pkt->neighbour ? REASON_PASS_ND : REASON_PASS_DEFAULT;
}

/* `fragments drop|pass`: later fragments, in IPv4 by protocol. In IPv6 a later fragment may name
 * any protocol (RFC 8200 section 4.5: the receiver uses only the next header of the first one). */
static __always_inline int fragments(const struct packet *pkt)
{
	__u8 treatment;

	if (!policy.fragments || pkt->fragment != FRAGMENT_LATER || !policy_holds(pkt))
		return GO_ON;
	treatment = pkt->family == 6 ? policy.treatment6 : policy.treatment[pkt->proto];
	return treatment == TREAT_DROP   ? REASON_DROP_FRAGMENTS
	       : treatment == TREAT_PASS ? REASON_PASS_FRAGMENTS
					 : GO_ON;
}
