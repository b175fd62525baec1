/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface of a packet as the policy numbers it. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/tables.bpf.h"
#include "xdp/test.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy_ifclass);
} ifclass SEC(".maps");

/* The interface of the policy with this number in the instance. Called only if the policy names
 * interfaces. */
static __always_inline __u32 policy_class(__u32 number)
{
	const struct policy_ifclass *classes = (const void *)MARKER_PTR(MARK_IFCLASS);
	const struct policy_test *test;

	if (marker_is(MARK_NAMED, 0))
		return 0;
	if (is_test())
		return (test = test_get()) ? test->iface : 0;
	return classes->class[number & (WEIR_IFACES - 1)];
}
