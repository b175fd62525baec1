// SPDX-License-Identifier: GPL-2.0-only
// Floor of the filter: is the source of a TCP or UDP packet over IPv4 in a set? Counts, drops or
// passes.
#include "tests/bench/floor_packet.bpf.h"

const volatile __u32 shift; // shift of a host's hash: 64 less the logarithm of the used cells

__u32 cells[FLOOR_CELLS];
__u16 direct[65536];
struct floor_node nodes[FLOOR_NODES];

static __always_inline int look_up_host(const struct xdp_md *ctx, const struct iphdr *ip)
{
	__u32 at = (__u32)(ip->saddr * FLOOR_MULTIPLIER >> (shift & 63));

	for (__u32 i = 0; i < FLOOR_PROBES; i++) {
		__u32 key = cells[(at + i) & (FLOOR_CELLS - 1)];

		if (key == ip->saddr)
			return count(ctx, XDP_DROP);
		if (!key)
			break;
	}
	return count(ctx, XDP_PASS);
}

SEC("xdp")
int floor_hosts(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);

	return ip ? look_up_host(ctx, ip) : XDP_PASS;
}

// As many instructions as Weir takes, 123 of which do nothing.
SEC("xdp")
int floor_padded(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);

	asm volatile(".rept 123\nr0 = 1\n.endr" ::: "r0");
	return ip ? look_up_host(ctx, ip) : XDP_PASS;
}

SEC("xdp")
int floor_prefixes(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);
	__u32 source, node;

	if (!ip)
		return XDP_PASS;
	source = bpf_ntohl(ip->saddr);
	node = direct[source >> 16];
	for (__u32 i = 0; i < FLOOR_RANGES && node >= FLOOR_FIRST; i++) {
		const struct floor_node *n = &nodes[node & (FLOOR_NODES - 1)];

		node = ((source - n->low) & 0xffff) <= n->span ? FLOOR_ALL : n->next;
	}
	return count(ctx, node == FLOOR_ALL ? XDP_DROP : XDP_PASS);
}

char _license[] SEC("license") = "GPL";
