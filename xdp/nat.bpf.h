/* SPDX-License-Identifier: GPL-2.0-only */
/* The stages of nat and fullnat around a policy.
 *
 * `nat_before` precedes the rules: it sends the answers of backends to their clients. `nat_after`
 * follows them: it sends a packet that has passed to the backend of its connection. Both take
 * common packets (xdp/short.bpf.h). */
#pragma once

#include "xdp/finish.bpf.h"
#include "xdp/nat-icmp.bpf.h"
#include "xdp/nat-ways.bpf.h"

/* As finish(): the verdict of a packet of `length` bytes. by: the counter of the rule that passed
 * it, if that has not counted it yet. */
static __always_inline int nat_finish(struct xdp_md *ctx, int reason, __u32 by, __u32 length,
				      int verdict)
{
	bool drops = reason >= REASON_DROP_FIRST;

	if (is_test()) {
		test_answer(reason);
		return drops ? XDP_DROP : verdict;
	}
	if (by != EVENT_NO_RULE)
		counter_add(bpf_map_lookup_elem(&rulecounters, &by), length);
	count(ctx, iface_number(ctx), reason, by, length);
	if (!drops)
		return verdict;
	event(ctx, reason, EVENT_NO_RULE);
	return XDP_DROP;
}

static __always_inline int nat_take_way(struct xdp_md *ctx, const int family, int base,
					const __u8 *ip, const struct arrival from,
					const bool answers, __u32 by)
{
	struct nat_packet p = {
		.at = {.frame = from.frame, .ip = ip},
		.k = {.base = base, .length = read_length(ip, family)},
		.from = from,
	};
	int verdict = XDP_DROP, reason;

	if (base == NOT_COMMON)
		return GO_ON;
	if (base >= BASE_ICMP)
		reason = answers ? nat_error_back(ctx, family, p, &verdict)
				 : nat_error_to(ctx, family, p, &verdict);
	else
		reason = answers ? nat_answer(ctx, family, p, &verdict)
				 : nat_forward(ctx, family, p, &verdict);
	return reason == NAT_LEAVE ? GO_ON : nat_finish(ctx, reason, by, p.k.length, verdict);
}

static __always_inline int nat_read(struct xdp_md *ctx, const bool answers, __u32 by)
{
	const __u8 *end = (const void *)(long)ctx->data_end;
	struct arrival from = {.number = iface_number(ctx)};
	const __u8 *ip = read_link(ctx, &from);
	__be16 ethertype;

	if (!ip)
		return GO_ON;
	ethertype = *(const __be16 *)(ip - 2);
	if (ethertype == bpf_htons(ETH_P_IP))
		return nat_take_way(ctx, 4, read_ip4(ip, end, true), ip, from, answers, by);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return nat_take_way(ctx, 6, read_ip6(ip, end, true), ip, from, answers, by);
	return GO_ON;
}

/* The verdict, or GO_ON: no answer. */
static __always_inline int nat_before(struct xdp_md *ctx)
{
	return nat_read(ctx, true, EVENT_NO_RULE);
}

/* The verdict, or GO_ON: nothing is counted or written. The general program has counted the rule
 * that passed the packet. */
static __always_inline int nat_after(struct xdp_md *ctx, const struct packet *pkt)
{
	return nat_read(ctx, false, pkt->family ? EVENT_NO_RULE : pkt->decided_by - 1);
}
