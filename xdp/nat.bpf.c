// SPDX-License-Identifier: GPL-2.0-only
// The programs of nat and fullnat, loaded beside the programs of a policy, around the same maps.
//
// `weir_nat_answer` precedes the policy: it sends the answers of backends to their clients, and
// leaves every other packet to the policy. `weir_nat` follows it: it sends a packet that has passed
// to the backend of its connection. Both take common packets only (xdp/short.bpf.h).
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/generic.bpf.h"
#include "xdp/nat-icmp.bpf.h"
#include "xdp/nat-ways.bpf.h"

/* Counts the outcome. The verdict, or GO_ON: the packet is left to the next program. */
static __always_inline int nat_finish(int outcome, __u32 length, int verdict)
{
	if (outcome == NAT_LEAVE)
		return GO_ON;
	nat_count(outcome, length);
	return outcome <= NAT_ANSWERED ? verdict : XDP_DROP;
}

static __always_inline int nat_take_way(struct xdp_md *ctx, const int family, int base,
					const __u8 *ip, const struct arrival from,
					const bool answers)
{
	struct nat_packet p = {
		.at = {.frame = from.frame, .ip = ip},
		.k = {.base = base, .length = read_length(ip, family)},
		.from = from,
	};
	int verdict = XDP_DROP, outcome;

	if (base == NOT_COMMON)
		return GO_ON;
	if (base >= BASE_ICMP)
		outcome = answers ? nat_error_back(ctx, family, p, &verdict)
				  : nat_error_to(ctx, family, p, &verdict);
	else
		outcome = answers ? nat_answer(ctx, family, p, &verdict)
				  : nat_forward(ctx, family, p, &verdict);
	return nat_finish(outcome, p.k.length, verdict);
}

static __always_inline int nat_read(struct xdp_md *ctx, const bool answers)
{
	const __u8 *end = (const void *)(long)ctx->data_end;
	struct arrival from = {.number = iface_number(ctx)};
	const __u8 *ip = read_link(ctx, &from);
	__be16 ethertype;

	if (!ip)
		return GO_ON;
	ethertype = *(const __be16 *)(ip - 2);
	if (ethertype == bpf_htons(ETH_P_IP))
		return nat_take_way(ctx, 4, read_ip4(ip, end, true), ip, from, answers);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return nat_take_way(ctx, 6, read_ip6(ip, end, true), ip, from, answers);
	return GO_ON;
}

SEC("xdp/policy")
int weir_nat_answer(struct xdp_md *ctx)
{
	int verdict = nat_read(ctx, true);

	if (verdict != GO_ON)
		return verdict;
	bpf_tail_call_static(ctx, &stages, STAGE_GENERAL);
	return XDP_DROP;
}

SEC("xdp/policy")
int weir_nat(struct xdp_md *ctx)
{
	int verdict = nat_read(ctx, false);

	if (verdict != GO_ON)
		return verdict;
	bpf_tail_call_static(ctx, &stages, STAGE_GENERAL);
	return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
