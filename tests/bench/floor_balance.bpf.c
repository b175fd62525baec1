// SPDX-License-Identifier: GPL-2.0-only
// Floors of the balancer: TCP over IPv4 to a VIP, ipip, tables in arrays; and the bare read of a
// bucket of pins.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/floor.bpf.h"

#define FRAGMENT 0x3fff
#define IP_BYTES 20

enum { COUNT_ALL, COUNT_SERVICE, COUNT_BACKEND = 64 }; /* services from 1 on, backends from 64 on */

const volatile __u64 key[4];
const volatile __u32 buckets; // used of `pins`: a power of two

struct floor_bucket pins[FLOOR_BUCKETS_MAX];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << FLOOR_LINES_LOG2);
	__type(key, __u32);
	__type(value, struct floor_line);
} vips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOOR_SLOTS);
	__type(key, __u32);
	__type(value, __u64); /* the number of a backend */
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOOR_BACKENDS);
	__type(key, __u32);
	__type(value, struct floor_backend);
} backends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_BACKEND + FLOOR_BACKENDS);
	__type(key, __u32);
	__type(value, struct floor_counter);
} counters SEC(".maps");

static __always_inline void count(__u32 index, __u32 bytes)
{
	struct floor_counter *c = bpf_map_lookup_elem(&counters, &index);

	if (c) {
		c->packets++;
		c->bytes += bytes;
	}
}

// A keyed universal hash of the flow, finished by two multiplications.
static __always_inline __u64 hash(const struct iphdr *ip, __u32 ports)
{
	__u64 h = (key[0] + ip->saddr) * (key[1] + ip->daddr) +
		  (key[2] + ports) * (key[3] + ip->protocol);

	h ^= h >> 32;
	h *= key[0];
	h ^= h >> 32;
	h *= key[1];
	return h ^ h >> 32;
}

// NULL: another kind of packet.
static __always_inline struct iphdr *common_packet(const struct xdp_md *ctx)
{
	struct ethhdr *ether = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(ether + 1);
	const struct tcphdr *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > (void *)(long)ctx->data_end ||
	    ether->h_proto != bpf_htons(ETH_P_IP) || (ether->h_dest[0] & 1) ||
	    *(const __u8 *)ip != 0x45 || ip->frag_off & bpf_htons(FRAGMENT) ||
	    ip->protocol != IPPROTO_TCP)
		return (void *)0;
	return ip;
}

// Its number, 0: none.
static __always_inline __u32 service_of(const struct iphdr *ip)
{
	__u16 port = ((const struct tcphdr *)(ip + 1))->dest;
	__u32 index = floor_line_of(ip->daddr, port);
	const struct floor_line *line = bpf_map_lookup_elem(&vips, &index);

	if (!line)
		return 0;
#pragma unroll
	for (int i = 0; i < FLOOR_VIPS; i++)
		if (line->end[i].address == ip->daddr && line->end[i].port == port &&
		    line->end[i].proto == IPPROTO_TCP)
			return line->end[i].service;
	return 0;
}

static __always_inline const struct floor_backend *backend_of(__u64 h, __u32 *ret_number)
{
	__u32 index = (__u32)((h >> 32) * FLOOR_SLOTS >> 32);
	const __u64 *slot = bpf_map_lookup_elem(&slots, &index);

	if (!slot)
		return (void *)0;
	*ret_number = (__u32)*slot;
	return bpf_map_lookup_elem(&backends, ret_number);
}

// One hop less, in the checksum as well (RFC 1141).
static __always_inline void take_hop(struct iphdr *ip)
{
	__u32 sum = ip->check + bpf_htons(0x100);

	ip->check = (__u16)(sum + (sum > 0xffff));
	ip->ttl--;
}

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16) ~(sum + (sum >> 16));
}

static __always_inline void write_head(__u8 *at, const struct floor_backend *b, __u16 length_be,
				       __u16 id)
{
	__u64 *to = (void *)at;
	const __u64 *from = (const void *)b->head;

	to[0] = from[0];
	to[1] = from[1];
	*(__u32 *)(at + 16) = length_be | (__u32)id << 16;
	*(__u32 *)(at + 20) = *(const __u32 *)(b->head + 20);
	*(__u16 *)(at + 24) = fold(b->sum + length_be + id);
	*(__u32 *)(at + 26) = *(const __u32 *)(b->head + 26);
	*(__u32 *)(at + 30) = *(const __u32 *)(b->head + 30);
}

static __always_inline int encapsulate(struct xdp_md *ctx, struct iphdr *ip,
				       const struct floor_backend *b, __u32 length, __u64 h)
{
	if (ip->ttl <= 1 || b->ifindex != ctx->ingress_ifindex || length + IP_BYTES > b->mtu)
		return XDP_DROP;
	take_hop(ip);
	if (bpf_xdp_adjust_head(ctx, -IP_BYTES) ||
	    (void *)(long)ctx->data + FLOOR_HEAD > (void *)(long)ctx->data_end)
		return XDP_DROP;
	write_head((void *)(long)ctx->data, b, bpf_htons((__u16)(length + IP_BYTES)), (__u16)h);
	return XDP_TX;
}

SEC("xdp")
int floor_ipip(struct xdp_md *ctx)
{
	struct iphdr *ip = common_packet(ctx);
	__u32 service = ip ? service_of(ip) : 0;
	const struct floor_backend *b;
	__u32 length, number;
	__u64 h;

	if (!ip || !service)
		return XDP_PASS;
	length = bpf_ntohs(ip->tot_len);
	h = hash(ip, *(const __u32 *)(ip + 1));
	b = backend_of(h, &number);
	if (!b || encapsulate(ctx, ip, b, length, h) != XDP_TX)
		return XDP_DROP;
	count(COUNT_ALL, length);
	count(service, length);
	count(COUNT_BACKEND + number, length);
	return XDP_TX;
}

// Looks at each pin of the flow's bucket.
SEC("xdp")
int floor_pins(struct xdp_md *ctx)
{
	const struct iphdr *ip = common_packet(ctx);
	const struct floor_bucket *bucket;
	__u32 found = 0;
	__u64 h;

	if (!ip)
		return XDP_PASS;
	h = hash(ip, *(const __u32 *)(ip + 1));
	bucket = &pins[(h >> 32) & (buckets - 1) & (FLOOR_BUCKETS_MAX - 1)];
#pragma unroll
	for (int i = 0; i < 8; i++)
		found |= bucket->pin[i] == h;
	count(COUNT_ALL + (found & 1), 1);
	return bpf_xdp_adjust_head(ctx, -IP_BYTES) ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "GPL";
