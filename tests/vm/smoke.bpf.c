// SPDX-License-Identifier: GPL-2.0-only
/* What Weir's datapath is built on, in one screen: a clock without a call, a tail call, frags. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* The deadline of a commit; 0: none. */
__u64 deadline;

SEC("xdp.frags")
int entry(struct xdp_md *ctx)
{
	__u32 key = 0;
	__u64 *count = bpf_map_lookup_elem(&seen, &key);

	if (count)
		__sync_fetch_and_add(count, 1);
	if (!deadline || bpf_jiffies64() < deadline)
		bpf_tail_call_static(ctx, &slots, 0);
	return XDP_PASS;
}

SEC("xdp.frags")
int drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}
