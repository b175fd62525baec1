// SPDX-License-Identifier: GPL-2.0-only
// Floors of what has a line of memory for each source: a blocked address with its counter, and a
// rate.
#include "tests/bench/floor_packet.bpf.h"

const volatile __u32 shift; // shift of a host's hash: 64 less the logarithm of the used cells

__u32 cells[FLOOR_CELLS];
struct floor_counter hits[FLOOR_CELLS];
struct floor_rates rates[1 << FLOOR_RATES_LOG2];

SEC("xdp")
int floor_overlay(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);
	__u32 at;

	if (!ip)
		return XDP_PASS;
	at = (__u32)(ip->saddr * FLOOR_MULTIPLIER >> (shift & 63));
	for (__u32 i = 0; i < FLOOR_PROBES; i++, at++) {
		__u32 key = cells[at & (FLOOR_CELLS - 1)];
		struct floor_counter *hit = &hits[at & (FLOOR_CELLS - 1)];

		if (!key)
			break;
		if (key != ip->saddr)
			continue;
		hit->packets++;
		hit->bytes += ctx->data_end - ctx->data;
		return count(ctx, XDP_DROP);
	}
	return count(ctx, XDP_PASS);
}

// Writes the time of the source, or of another one in its place.
SEC("xdp")
int floor_limit(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);
	struct floor_rates *line;
	__u32 place;

	if (!ip)
		return XDP_PASS;
	line = &rates[(__u32)(ip->saddr * FLOOR_MULTIPLIER >> (64 - FLOOR_RATES_LOG2))];
	place = ip->saddr & 7;
#pragma unroll
	for (__u32 i = 0; i < 8; i++)
		if (line->source[i] >> 32 == ip->saddr)
			place = i;
	line->source[place & 7] = (__u64)ip->saddr << 32 | (__u32)bpf_jiffies64();
	return count(ctx, XDP_PASS);
}

char _license[] SEC("license") = "GPL";
