// SPDX-License-Identifier: GPL-2.0-only
// What the datapath stands on, small enough to blame the kernel: a clock, a tail call, frags.

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

// Jiffies after which the slot is left alone; 0: never.
__u64 deadline;

SEC("xdp.frags")
int entry(struct xdp_md *ctx)
{
	if (!deadline || bpf_jiffies64() < deadline)
		bpf_tail_call_static(ctx, &slots, 0);
	return XDP_PASS;
}

SEC("xdp.frags")
int drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}
