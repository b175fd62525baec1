// SPDX-License-Identifier: GPL-2.0-only
// Tells user space the jiffies64 of the kernel, the clock of all expiries; run with
// BPF_PROG_TEST_RUN.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct clock_reading {
	__u64 jiffies;
};

SEC("syscall")
int weir_clock(struct clock_reading *reading)
{
	reading->jiffies = bpf_jiffies64();
	return 0;
}

char _license[] SEC("license") = "GPL";
