// SPDX-License-Identifier: GPL-2.0-only
// Gives every packet another source address, then jumps into the program under test or sends the
// packet out of a device. Outer headers that the program under test has added are removed first.
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "tests/bench/draw.bpf.h"

const volatile __u32 offset;  // offset of the source in the frame
const volatile __u32 family;  // of a source
const volatile __u32 flood;   // a new source for each packet instead of one of the list
const volatile __u32 spread;  // random bits of such a source
const volatile __u32 base;    // the other bits
const volatile __u32 ifindex; // index of the output device; 0: jump
const volatile __u32 restore; // rewrite the headers
const volatile __u32 grown;   // bytes to remove before the headers
const volatile struct bench_head head;

__u32 next_source;
__u64 random_state = 0x9e3779b97f4a7c15ull;

// In network order. Of IPv4 two in a word. A map would be looked up: a test and a branch more
// before each packet.
__u64 sources[2 * BENCH_SOURCES];

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

// Written in the units in which it is read: two words of IPv6, one of IPv4.
static __always_inline void draw_listed(__u8 *at)
{
	__u32 number = next_source++ & (BENCH_SOURCES - 1);

	if (family == 4) {
		*(__u32 *)at = ((const __u32 *)sources)[number];
		return;
	}
	((__u64 *)at)[0] = sources[2 * number];
	((__u64 *)at)[1] = sources[2 * number + 1];
}

static __always_inline bool restore_frame(struct xdp_md *ctx)
{
	struct bench_head *to;

	if (grown && bpf_xdp_adjust_head(ctx, (int)grown))
		return false;
	to = (void *)(long)ctx->data;
	if ((void *)(to + 1) > (void *)(long)ctx->data_end)
		return false;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		to->mac[i].first = head.mac[i].first;
		to->mac[i].last = head.mac[i].last;
	}
	to->ethertype = head.ethertype;
#pragma unroll
	for (int i = 0; i < BENCH_HEAD_WORDS; i++)
		to->words[i] = head.words[i];
	return true;
}

static __always_inline int draw(struct xdp_md *ctx)
{
	__u8 *at;

	if (restore && !restore_frame(ctx))
		return XDP_ABORTED;
	at = (void *)(long)ctx->data + offset;
	if ((void *)(at + 16) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	if (flood)
		*(__u32 *)at = ((__u32)random64() & spread) | base;
	else
		draw_listed(at);
	if (ifindex)
		return (int)bpf_redirect(ifindex, 0);
	bpf_tail_call_static(ctx, &target, 0);
	return XDP_ABORTED;
}

SEC("xdp")
int bench_draw(struct xdp_md *ctx)
{
	return draw(ctx);
}

#define TEXT_(n) #n
#define TEXT(n)  TEXT_(n)

// The same with instructions that do nothing, as a driver executes some hundred between two
// packets.
SEC("xdp")
int bench_spaced(struct xdp_md *ctx)
{
	asm volatile(".rept " TEXT(BENCH_IDLE) "\nr0 = 1\n.endr" ::: "r0");
	return draw(ctx);
}

char _license[] SEC("license") = "GPL";
