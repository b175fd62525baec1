/* SPDX-License-Identifier: GPL-2.0-only */
/* The condition "limit" of a rule, for both ways. */
#pragma once

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

/* l3: offset of the IP header. */
static __always_inline bool limit_exceeded(struct xdp_md *ctx, const struct policy_rule *rule,
					   __u32 l3, __u32 family)
{
	struct rate_addr addr = {};
	bool source = rule->per == PER_SOURCE;

	if (rule->per == PER_RULE)
		return meter_exceeds(ctx, rule, !is_test());
	/* check refuses such rules: a frame without an address has no bucket */
	if (!family)
		return false;
	if (!(family == 4 ? limit_addr(ctx, l3 + (source ? 12 : 16), 4, &addr)
			  : limit_addr(ctx, l3 + (source ? 8 : 24), 6, &addr)))
		return true;
	return bucket_exceeds(ctx, addr, rule, !is_test());
}

/* Does the packet satisfy the limit of the rule? Charges one that conforms. Global: the verifier
 * follows the places of a bucket once, and of what the ways know it takes little. */
__noinline int limit_holds(struct xdp_md *ctx, __u32 index, __u32 l3, __u32 family)
{
	const struct policy_rule *rule = bpf_map_lookup_elem(&rules, &index);

	return rule && limit_exceeded(ctx, rule, l3, family) == !(rule->flags & RULE_UNDER);
}
