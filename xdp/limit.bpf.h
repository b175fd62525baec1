/* SPDX-License-Identifier: GPL-2.0-only */
/* The condition "limit" of a rule, for both ways. */
#pragma once

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "xdp/packet.bpf.h"
#include "xdp/rate.bpf.h"
#include "xdp/test.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy_rule);
} rules SEC(".maps");

/* The address at an offset in the frame; false: a check has failed that cannot. */
static __always_inline bool limit_addr(const struct xdp_md *ctx, __u32 offset, const int family,
				       struct rate_addr *ret)
{
	const __u8 *at = (const void *)(long)ctx->data + BOUND(offset, 63);

	if (at + (family == 4 ? 4 : 16) > (const __u8 *)(long)ctx->data_end)
		return false;
	*ret = family == 4 ? rate_addr4((const void *)at) : rate_addr6((const void *)at);
	return true;
}

/* l3: offset of the IP header; port: 0 unless the limit is per source and port. */
static __always_inline bool limit_exceeded(struct xdp_md *ctx, const struct policy_rule *rule,
					   __u32 l3, __u32 family, bool source, __u32 port)
{
	struct rate_addr addr = {};

	if (rule->per == PER_RULE)
		return meter_exceeds(ctx, rule, !is_test());
	/* check refuses such rules: a frame without an address has no bucket */
	if (!family)
		return false;
	if (!(family == 4 ? limit_addr(ctx, l3 + (source ? 12 : 16), 4, &addr)
			  : limit_addr(ctx, l3 + (source ? 8 : 24), 6, &addr)))
		return true;
	return bucket_exceeds(ctx, addr, port, rule, !is_test());
}

/* The destination port of a packet without IPv4 options or extension headers; -1: it has some, or
 * its ports are not in the first buffer. `l4` is the offset of the next header from the first. */
static __always_inline __s32 port_of_common(const __u8 *l4, const __u8 *end, __u8 proto)
{
	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6)
		return 0;
	if ((proto != IPPROTO_TCP && proto != IPPROTO_UDP) || l4 + 4 > end)
		return -1;
	return bpf_ntohs(*(const __be16 *)(l4 + 2));
}

static __always_inline __s32 common_port(const struct xdp_md *ctx, __u32 l3, __u32 family)
{
	const __u8 *ip = (const void *)(long)ctx->data + BOUND(l3, 63);
	const __u8 *end = (const void *)(long)ctx->data_end;

	if (ip + sizeof(struct iphdr) > end)
		return -1;
	if (family == 6)
		return port_of_common(ip + sizeof(struct ipv6hdr), end, ip[6]);
	/* The flag "do not fragment" is the only one that such a packet may have. */
	if (ip[0] != 0x45 || *(const __be16 *)(ip + 6) & bpf_htons(0x3fff))
		return -1;
	return port_of_common(ip + sizeof(struct iphdr), end, ip[9]);
}

/* Host order; 0: the packet has no ports. The short program keeps no packet: those that it decides
 * have their ports at a fixed place. */
static __always_inline __u32 limit_port(const struct xdp_md *ctx, __u32 l3, __u32 family)
{
	__s32 port = common_port(ctx, l3, family);
	const struct packet *pkt;

	if (port >= 0)
		return port;
	return (pkt = packet_kept()) ? pkt->dport : 0;
}

/* limit_holds() of a policy with limits per source and port. */
__noinline int port_limit_holds(struct xdp_md *ctx, __u32 index, __u32 l3, __u32 family)
{
	const struct policy_rule *rule = bpf_map_lookup_elem(&rules, &index);
	__u32 port;

	if (!rule)
		return 0;
	port = rule->per == PER_SOURCE_PORT ? limit_port(ctx, l3, family) : 0;
	return limit_exceeded(ctx, rule, l3, family, rule->per != PER_DESTINATION, port) ==
	       !(rule->flags & RULE_UNDER);
}

/* Does the packet satisfy the limit of the rule? Charges one that conforms. Global: the verifier
 * follows the places of a bucket once, and of what the ways know it takes little. */
__noinline int limit_holds(struct xdp_md *ctx, __u32 index, __u32 l3, __u32 family)
{
	const struct policy_rule *rule;

	if (marker_is(MARK_PORT_LIMITS, 1))
		return port_limit_holds(ctx, index, l3, family);
	rule = bpf_map_lookup_elem(&rules, &index);
	return rule && limit_exceeded(ctx, rule, l3, family, rule->per == PER_SOURCE, 0) ==
			       !(rule->flags & RULE_UNDER);
}
