// SPDX-License-Identifier: GPL-2.0-only
// Gives every packet another source address, then jumps into the program under test or sends the packet out of a
// device. Outer headers that the program under test has added are removed first.
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "tests/bench/draw.bpf.h"

const volatile __u32 offset;  // of the source in the frame
const volatile __u32 words;   // of a source: 1 or 4
const volatile __u32 flood;   // a new source for each packet instead of one of the list
const volatile __u32 spread;  // random bits of such a source
const volatile __u32 base;    // the other bits
const volatile __u32 ifindex; // of the output device; 0: jump
const volatile __u32 restore; // rewrite the link and IP headers
const volatile __u32 grown;   // bytes to remove in front of them
const volatile struct bench_head head;

__u32 next_source;
__u64 random_state = 0x9e3779b97f4a7c15ull;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench_cells);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

// xorshift64 (Marsaglia 2003): no number is repeated within the period.
static __always_inline __u64 random64(void)
{
	__u64 x = random_state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return random_state = x;
}

static __always_inline void draw_listed(__u32 *at)
{
	__u32 cell = (next_source++ & (BENCH_SOURCES - 1)) * words, line = cell / BENCH_CELLS;
	const struct bench_cells *cells = bpf_map_lookup_elem(&sources, &line);

	if (!cells)
		return;
#pragma unroll
	for (__u32 i = 0; i < 4; i++)
		if (i < words)
			at[i] = cells->cell[(cell + i) % BENCH_CELLS];
}

static __always_inline bool restore_frame(struct xdp_md *ctx)
{
	__u16 *ether;
	__u32 *ip;

	if (grown && bpf_xdp_adjust_head(ctx, (int)grown))
		return false;
	ether = (void *)(long)ctx->data;
	ip = (void *)(ether + BENCH_HEAD_ETHER);
	if ((void *)(ip + BENCH_HEAD_IP) > (void *)(long)ctx->data_end)
		return false;
#pragma unroll
	for (int i = 0; i < BENCH_HEAD_ETHER; i++)
		ether[i] = head.ether[i];
#pragma unroll
	for (int i = 0; i < BENCH_HEAD_IP; i++)
		ip[i] = head.ip[i];
	return true;
}

SEC("xdp")
int bench_draw(struct xdp_md *ctx)
{
	__u32 *at;

	if (restore && !restore_frame(ctx))
		return XDP_ABORTED;
	at = (void *)(long)ctx->data + offset;
	if ((void *)(at + 4) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	if (flood)
		at[0] = ((__u32)random64() & spread) | base;
	else
		draw_listed(at);
	if (ifindex)
		return (int)bpf_redirect(ifindex, 0);
	bpf_tail_call_static(ctx, &target, 0);
	return XDP_ABORTED;
}

char _license[] SEC("license") = "GPL";
