// SPDX-License-Identifier: GPL-2.0-only
// For backends: takes the tunnel's header off packets that a balancer has wrapped (IP in IP, GUE), so
// that the host needs no tunnel device. Everything else is passed as it came.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/decap-inner.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decap_settings);
} decap_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DECAP_ADDRESSES);
	__type(key, struct decap_address);
	__type(value, __u32);
} decap_here SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DECAP_ROW_COUNT);
	__type(key, __u32);
	__type(value, struct decap_counter);
} decap_counts SEC(".maps");

static __always_inline void count_row(__u32 row, __u32 bytes)
{
	struct decap_counter *counter = bpf_map_lookup_elem(&decap_counts, &row);

	if (counter) {
		counter->packets++;
		counter->bytes += bytes;
	}
}

static __always_inline bool is_gue(const struct packet *pkt)
{
	const struct decap_settings *settings;
	__u32 zero = 0;

	if (pkt->proto != IPPROTO_UDP || !pkt->has_l4)
		return false;
	settings = bpf_map_lookup_elem(&decap_settings, &zero);
	return settings && settings->port && settings->port == pkt->dport;
}

static __always_inline bool is_tunnel(const struct packet *pkt)
{
	return pkt->proto == IPPROTO_IPIP || pkt->proto == IPPROTO_IPV6 || is_gue(pkt);
}

static __always_inline bool is_here(const struct packet *pkt)
{
	struct decap_address key = {.family = pkt->family};

	__builtin_memcpy(key.addr, pkt->dst, sizeof(key.addr));
	return bpf_map_lookup_elem(&decap_here, &key);
}

/* Does the tunnel end at this host, with this packet? */
static __always_inline int check_outer(struct xdp_md *ctx, struct packet *pkt)
{
	if (!is_here(pkt))
		return DECAP_PASS_NOT_HERE;
	if (pkt->fragment)
		return DECAP_PASS_FRAGMENT;
	if (pkt->family == 6 && pkt->l4_offset != pkt->l3_offset + sizeof(struct ipv6hdr) &&
	    decap_routed(ctx, pkt))
		return DECAP_PASS_ROUTED;
	return GO_ON;
}

static __always_inline int unwrap(struct xdp_md *ctx, struct packet *pkt)
{
	struct inner in = {};
	int row;

	if ((row = check_outer(ctx, pkt)) != GO_ON)
		return row;
	if ((row = find_inner(ctx, pkt, &in)) != GO_ON)
		return row;
	if ((row = check_inner(ctx, pkt, &in)) != GO_ON)
		return row;
	if ((row = strip(ctx, pkt, &in)) != GO_ON)
		return row;
	return stripped_row(pkt, &in);
}

SEC("xdp")
int weir_decap(struct xdp_md *ctx)
{
	struct packet pkt = {};
	int row;

	/* What is malformed outside is for the stack to judge. */
	if (parse(ctx, &pkt) != GO_ON || !is_tunnel(&pkt))
		return XDP_PASS;
	row = unwrap(ctx, &pkt);
	count_row(row, pkt.length);
	return row >= DECAP_DROP_FIRST ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
