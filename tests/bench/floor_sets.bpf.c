// SPDX-License-Identifier: GPL-2.0-only
// Floors of the filter for many prefixes, and for IPv6.
#include "tests/bench/floor_packet.bpf.h"

const volatile __u32 shift; // shift of a host's hash: 64 less the logarithm of the used cells

struct floor_bits bits[FLOOR_BITS_CELLS];
__u32 first[FLOOR_BITS_CELLS];
struct floor_leaf leaves[FLOOR_LEAVES];
struct floor_host6 hosts[FLOOR_CELLS6];
__u32 heads[FLOOR_HEADS];
struct floor_node6 nodes[FLOOR_NODES6];

static __always_inline __u64 ones(__u64 n)
{
	n -= n >> 1 & 0x5555555555555555;
	n = (n & 0x3333333333333333) + (n >> 2 & 0x3333333333333333);
	return ((n + (n >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
}

SEC("xdp")
int floor_many(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);
	__u32 source, cell, leaf;
	__u64 bit, found;

	if (!ip)
		return XDP_PASS;
	source = bpf_ntohl(ip->saddr);
	cell = source >> FLOOR_BITS_SHIFT;
	bit = 1ull << (source >> 8 & 63);
	found = bits[cell].all & bit;
	if (bits[cell].mixed & bit) {
		leaf = first[cell] + (__u32)ones(bits[cell].mixed & (bit - 1));
		found = leaves[leaf & (FLOOR_LEAVES - 1)].in[source >> 6 & 3] &
			1ull << (source & 63);
	}
	return count(ctx, found ? XDP_DROP : XDP_PASS);
}

static __always_inline struct floor_host6 source_of(const struct ipv6hdr *ip)
{
	struct floor_host6 source;

	__builtin_memcpy(&source, &ip->saddr, sizeof(source));
	return source;
}

SEC("xdp")
int floor_hosts6(struct xdp_md *ctx)
{
	const struct ipv6hdr *ip = common_packet6(ctx);
	struct floor_host6 source;
	__u32 at;

	if (!ip)
		return XDP_PASS;
	source = source_of(ip);
	at = floor_host6_hash(source, shift);
	for (__u32 i = 0; i < FLOOR_PROBES; i++) {
		const struct floor_host6 *host = &hosts[(at + i) & (FLOOR_CELLS6 - 1)];

		if (host->high == source.high && host->low == source.low)
			return count(ctx, XDP_DROP);
		if (!host->high)
			break;
	}
	return count(ctx, XDP_PASS);
}

SEC("xdp")
int floor_prefixes6(struct xdp_md *ctx)
{
	const struct ipv6hdr *ip = common_packet6(ctx);
	__u32 node;
	__u64 high;

	if (!ip)
		return XDP_PASS;
	high = bpf_be64_to_cpu(source_of(ip).high);
	node = heads[floor_head_hash(high) & (FLOOR_HEADS - 1)];
	for (__u32 i = 0; i < FLOOR_PROBES && node; i++) {
		const struct floor_node6 *n = &nodes[node & (FLOOR_NODES6 - 1)];

		if (high - n->low <= n->span)
			return count(ctx, XDP_DROP);
		node = n->next;
	}
	return count(ctx, XDP_PASS);
}

char _license[] SEC("license") = "GPL";
