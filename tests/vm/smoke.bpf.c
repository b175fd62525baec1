// SPDX-License-Identifier: GPL-2.0-only
// The features that the datapath requires, in a program small enough to blame the kernel: a clock,
// a tail call, frags.

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} progs SEC(".maps");

// Jiffies after which the program is not called; 0: no deadline.
__u64 deadline;

SEC("xdp.frags")
int root(struct xdp_md *ctx)
{
	if (!deadline || bpf_jiffies64() < deadline)
		bpf_tail_call_static(ctx, &progs, 0);
	return XDP_PASS;
}

SEC("xdp.frags")
int drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}
