// SPDX-License-Identifier: GPL-2.0-only
// Peers: one look-up of the source in a kernel map; a packet whose source is found is dropped.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define OFFSET4 26 // offset of the source: after Ethernet and 12 bytes of IPv4
#define OFFSET6 22

struct lpm_key {
	__u32 prefixlen;
	__u32 addr[4];
};

/* Key sizes and numbers of entries are set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, 16);
	__uint(value_size, 8);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, 20);
	__uint(value_size, 8);
} lpm SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} lru SEC(".maps");

static __always_inline const __u32 *source(const struct xdp_md *ctx, __u32 offset, __u32 bytes)
{
	const void *at = (void *)(long)ctx->data + offset;

	return at + bytes > (void *)(long)ctx->data_end ? (void *)0 : at;
}

SEC("xdp")
int bench_hash4(struct xdp_md *ctx)
{
	const __u32 *at = source(ctx, OFFSET4, 4);

	return at && bpf_map_lookup_elem(&hash, at) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int bench_hash6(struct xdp_md *ctx)
{
	const __u32 *at = source(ctx, OFFSET6, 16);

	return at && bpf_map_lookup_elem(&hash, at) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int bench_lpm4(struct xdp_md *ctx)
{
	const __u32 *at = source(ctx, OFFSET4, 4);
	struct lpm_key key = {.prefixlen = 32};

	if (!at)
		return XDP_PASS;
	key.addr[0] = at[0];
	return bpf_map_lookup_elem(&lpm, &key) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int bench_lpm6(struct xdp_md *ctx)
{
	const __u32 *at = source(ctx, OFFSET6, 16);
	struct lpm_key key = {.prefixlen = 128};

	if (!at)
		return XDP_PASS;
	__builtin_memcpy(key.addr, at, sizeof(key.addr));
	return bpf_map_lookup_elem(&lpm, &key) ? XDP_DROP : XDP_PASS;
}

// A counter for each source, like a usual rate limit.
SEC("xdp")
int bench_lru4(struct xdp_md *ctx)
{
	const __u32 *at = source(ctx, OFFSET4, 4);
	__u64 first = 1, *packets;

	if (!at)
		return XDP_PASS;
	packets = bpf_map_lookup_elem(&lru, at);
	if (packets)
		__sync_fetch_and_add(packets, 1);
	else
		bpf_map_update_elem(&lru, at, &first, BPF_ANY);
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
