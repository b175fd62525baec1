// SPDX-License-Identifier: GPL-2.0-only
// Floor of the filter: is the source of a TCP or UDP packet over IPv4 in a set? Counts, drops or passes.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/floor.bpf.h"

#define FRAGMENT 0x3fff /* more fragments, and the offset */

const volatile __u32 shift; // of the hash of a host: 64 less the logarithm of the used cells

__u32 cells[FLOOR_CELLS];
__u16 direct[65536];
struct floor_node nodes[FLOOR_NODES];

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct floor_counter);
} counters SEC(".maps");

// NULL: another kind of packet.
static __always_inline const struct iphdr *common_packet(const struct xdp_md *ctx)
{
	const struct ethhdr *ether = (void *)(long)ctx->data;
	const struct iphdr *ip = (void *)(ether + 1);

	if ((void *)((const struct udphdr *)(ip + 1) + 1) > (void *)(long)ctx->data_end ||
	    ether->h_proto != bpf_htons(ETH_P_IP) || *(const __u8 *)ip != 0x45 ||
	    ip->frag_off & bpf_htons(FRAGMENT))
		return (void *)0;
	return ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP ? ip : (void *)0;
}

static __always_inline int count(const struct xdp_md *ctx, int verdict)
{
	__u32 index = verdict == XDP_DROP;
	struct floor_counter *c = bpf_map_lookup_elem(&counters, &index);

	if (c) {
		c->packets++;
		c->bytes += ctx->data_end - ctx->data;
	}
	return verdict;
}

SEC("xdp")
int floor_hosts(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);
	__u32 at;

	if (!ip)
		return XDP_PASS;
	at = (__u32)(ip->saddr * FLOOR_MULTIPLIER >> (shift & 63));
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
