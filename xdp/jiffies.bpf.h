/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of slots, pins and rates, which tests can set. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* The one place where a test object differs: tests/reference/balancer and tests/limits play
 * histories of hours and years, and compare slots, pins and the packets that a limit passes, to the
 * bit, with models that get the same time. The kernel's clock cannot be set. */
#ifdef TEST_CLOCK
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} test_clock SEC(".maps");

static __always_inline __u64 now_jiffies(void)
{
	__u32 zero = 0;
	const __u64 *now = bpf_map_lookup_elem(&test_clock, &zero);

	return now ? *(volatile const __u64 *)now : 0;
}
#else
static __always_inline __u64 now_jiffies(void)
{
	return bpf_jiffies64();
}
#endif
