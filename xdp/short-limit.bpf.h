/* SPDX-License-Identifier: GPL-2.0-only */
/* The default of the short way, and rules whose only condition is a limit. */
#pragma once

#include "xdp/default.bpf.h"
#include "xdp/limit.bpf.h"
#include "xdp/short-match.bpf.h"

/* ---- default --------------------------------------------------------------------------------- */

static __always_inline bool drops_by_default(__u32 class)
{
	return !marker_is(MARK_DEFAULT_DROP, 0) &&
	       SHIFT_RIGHT(MARKER(MARK_DEFAULT_DROP), class) & 1;
}

/* Packets that may be essential are left to the general program. */
static __always_inline bool may_be_essential(const struct view v, const int family)
{
	const __u8 *ports = v.ip + header_of(family);

	if (is_icmp_view(v))
		return true;
	if (v.base != BASE_UDP)
		return false;
	return is_dhcp_ports(family, read16(ports), read16(ports + 2));
}

static __always_inline struct fate decided(int reason)
{
	return (struct fate){.reason = reason, .counter = EVENT_NO_RULE};
}

static __always_inline struct fate default_common(const struct view v, const int family,
						  __u32 class)
{
	if (!drops_by_default(class))
		return decided(REASON_PASS_DEFAULT);
	return may_be_essential(v, family) ? ASK : decided(REASON_DROP_DEFAULT);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* May the packet at `ip` be essential? The header is read again. */
static __always_inline bool may_be_essential_at(const __u8 *ip, const __u8 *end, const int family)
{
	struct view v = {.ip = ip};
	int base;

	if (ip + sizeof(struct iphdr) + sizeof(struct udphdr) > end)
		return true;
	base = family == 4 ? read_ip4(ip, end, false) : read_ip6(ip, end, false);
	v.base = base;
	return base == NOT_COMMON || may_be_essential(v, family);
}

/* The step after the first rule of the only word. ip: the header. */
static __always_inline struct fate after_first(__u64 word, const __u8 *ip, const __u8 *end,
					       __u32 class, __u32 family)
{
	word &= word - 1;
	if (word)
		return act_common(word, 0);
	if (!drops_by_default(class))
		return decided(REASON_PASS_DEFAULT);
	if (family == 4 ? may_be_essential_at(ip, end, 4) : may_be_essential_at(ip, end, 6))
		return ASK;
	return decided(REASON_DROP_DEFAULT);
}

/* The result of the first rule of the only word, which has a limit; its counter in the upper half,
 * the reason in the lower one. The next step must be known before: the limit charges the packet,
 * which cannot start again after that. Global, and it reads the frame again: so other packets keep
 * nothing in registers for it. */
__noinline __u64 decide_limited(struct xdp_md *ctx, __u64 word, __u32 class, __u32 family)
{
	const __u8 *at = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	struct fate first, next = ASK;
	__u32 l3 = ETH_HLEN;

	/* Kernel 6.1 also verifies functions that are not called: without rules there are no
	 * actions. */
	if (RULES_ARE(M_WORDS, 0) || at + ETH_HLEN + sizeof(struct vlan_tag) > end)
		return (__u32)GO_ON;
	first = act_common(word, 0);
	l3 += BOUND(is_tagged(*(const __be16 *)(at + 12)), sizeof(struct vlan_tag));
	if (!is_test())
		next = after_first(word, at + l3, end, class, family);
	if (next.reason < 0)
		return (__u32)GO_ON;
	if (!limit_holds(ctx, matrix_limit_rule(first.reason), l3, family))
		return (__u64)next.counter << 32 | (__u32)next.reason;
	return (__u64)first.counter << 32 | (__u32)matrix_limit_reason(first.reason);
}
