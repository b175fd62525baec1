// SPDX-License-Identifier: GPL-2.0-only
// The program for backends: removes the tunnel headers (IP in IP, GUE) that a balancer has added.
//
// So the backend needs no tunnel device. The program takes only tunnels from the addresses that
// --from names, and only packets to this host. Everything else passes unchanged.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/decap-inner.bpf.h"
#include "xdp/lpm.bpf.h"

/* Packets that the kernel merges so far are not tunnels: they pass, as malformed packets do. */
__noinline int merged_bytes(struct xdp_md *ctx, __u32 offset)
{
	(void)ctx;
	(void)offset;
	return 0;
}

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

/* For twice as many as are ever used, and one: new ones come before old ones go, and kernels before
 * 6.13 refuse to replace an entry in a full trie. */
struct {
	LPM_MAP(struct decap_prefix, __u32);
	__uint(max_entries, 2 * 2 * DECAP_PREFIXES + 1);
} decap_nets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DECAP_REASON_COUNT);
	__type(key, __u32);
	__type(value, struct decap_counter);
} decap_counts SEC(".maps");

static __always_inline void count_reason(__u32 reason, __u32 bytes)
{
	struct decap_counter *counter = bpf_map_lookup_elem(&decap_counts, &reason);

	if (counter) {
		counter->packets++;
		counter->bytes += bytes;
	}
}

static __always_inline struct decap_settings settings_now(void)
{
	const struct decap_settings *settings;
	__u32 zero = 0;

	settings = bpf_map_lookup_elem(&decap_settings, &zero);
	return settings ? *settings : (struct decap_settings){};
}

static __always_inline bool is_gue(const struct packet *pkt)
{
	return pkt->proto == IPPROTO_UDP && pkt->has_l4 && pkt->dport &&
	       pkt->dport == settings_now().port;
}

static __always_inline bool is_tunnel(const struct packet *pkt)
{
	return pkt->proto == IPPROTO_IPIP || pkt->proto == IPPROTO_IPV6 || is_gue(pkt);
}

static __always_inline bool in_prefixes(__u8 kind, __u8 family, const __u32 *addr)
{
	struct decap_prefix key = {
		.length = DECAP_PREFIX_HEAD + (family == 4 ? 32 : 128),
		.kind = kind,
		.family = family,
	};

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&decap_nets, &key);
}

static __always_inline bool is_here(__u8 family, const __u32 *addr)
{
	struct decap_address key = {.family = family};

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&decap_here, &key) ||
	       (settings_now().flags & DECAP_HERE_NETS && in_prefixes(DECAP_HERE, family, addr));
}

/* May this be given to this host's stack? The sender of the tunnel has written it. */
static __always_inline int check_target(const struct inner *in)
{
	if (settings_now().flags & DECAP_FORWARD || is_here(in->family, in->dst))
		return GO_ON;
	return DECAP_DROP_ELSEWHERE;
}

/* Does the tunnel end at this host, with this packet, and come from one of those it is taken
 * from? */
static __always_inline int check_outer(struct xdp_md *ctx, struct packet *pkt)
{
	if (!is_here(pkt->family, pkt->dst))
		return DECAP_PASS_NOT_HERE;
	if (!in_prefixes(DECAP_FROM, pkt->family, pkt->src))
		return DECAP_PASS_FOREIGN;
	if (pkt->fragment)
		return DECAP_PASS_FRAGMENT;
	if (pkt->family == 6 && pkt->l4_offset != pkt->l3_offset + sizeof(struct ipv6hdr) &&
	    decap_routed(ctx, pkt))
		return DECAP_PASS_ROUTED;
	return GO_ON;
}

static __always_inline int decap(struct xdp_md *ctx, struct packet *pkt)
{
	struct inner in = {};
	int reason;

	if ((reason = check_outer(ctx, pkt)) != GO_ON)
		return reason;
	if ((reason = find_inner(ctx, pkt, &in)) != GO_ON)
		return reason;
	if ((reason = check_inner(ctx, pkt, &in)) != GO_ON)
		return reason;
	if ((reason = check_target(&in)) != GO_ON)
		return reason;
	if ((reason = strip(ctx, pkt, &in)) != GO_ON)
		return reason;
	return stripped_reason(pkt, &in);
}

SEC("xdp")
int weir_decap(struct xdp_md *ctx)
{
	struct packet pkt = {};
	int reason;

	/* Malformed outer packets are left to the stack. */
	if (parse(ctx, &pkt) != GO_ON || !is_tunnel(&pkt))
		return XDP_PASS;
	reason = decap(ctx, &pkt);
	count_reason(reason, pkt.length);
	return reason >= DECAP_DROP_FIRST ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
