// SPDX-License-Identifier: GPL-2.0-only
// Peer: evaluates rules one after the other, like a filter without tables. IPv4 without options,
// untagged.
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/draw.bpf.h"

#define RULES_MAX 4096

/* One element per rule: a look-up after the last one finds nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES_MAX);
	__type(key, __u32);
	__type(value, struct bench_rule);
} scan SEC(".maps");

/* The Ethernet, IPv4 and TCP fields that rules use. */
struct headers {
	__u8 ether[14];
	__u8 ip_before[9];
	__u8 proto;
	__u16 ip_sum;
	__u32 src, dst;
	__u16 sport, dport;
	__u8 tcp_before[9];
	__u8 flags;
} __attribute__((packed));

struct fields {
	__u32 src, dst, sport, dport;
	__u8 proto, flags;
};

// Negative, i.e. with the highest bit set, if the port is outside the range.
static __always_inline __u32 outside(__u32 port, __u32 first, __u32 last)
{
	return (port - first) | (last - port);
}

// 0: the rule matches. Branch-free, so that the verifier visits each rule once. The frame has no
// tag.
static __always_inline __u32 misses(const struct fields *f, const struct bench_rule *r)
{
	__u32 ports = outside(f->sport, r->sport_first, r->sport_last) |
		      outside(f->dport, r->dport_first, r->dport_last);

	return ((f->src & r->src_mask) ^ r->src) | ((f->dst & r->dst_mask) ^ r->dst) |
	       ((f->proto & r->proto_mask) ^ r->proto) | ((f->flags & r->flags_mask) ^ r->flags) |
	       r->vlan | (ports >> 31);
}

SEC("xdp")
int bench_linear(struct xdp_md *ctx)
{
	const struct headers *h = (void *)(long)ctx->data;
	struct fields f;

	if ((void *)(h + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	f.src = bpf_ntohl(h->src);
	f.dst = bpf_ntohl(h->dst);
	f.sport = bpf_ntohs(h->sport);
	f.dport = bpf_ntohs(h->dport);
	f.proto = h->proto;
	f.flags = h->flags;
	for (__u32 i = 0; i < RULES_MAX; i++) {
		__u32 index = i;
		const struct bench_rule *rule;

		rule = bpf_map_lookup_elem(&scan, &index);
		if (!rule)
			break;
		if (!misses(&f, rule))
			return XDP_DROP;
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
