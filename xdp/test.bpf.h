/* SPDX-License-Identifier: GPL-2.0-only */
/* Test programs: a policy loaded once more over the same tables, to run test packets for `expect`
 * and `explain`.
 *
 * A test program writes no counter, bucket, set or event, only its answer: reason, deciding rule,
 * rules that counted. Asked *live*, it reads the live rates, sets and overlay, and looks up routes
 * for the interface of the question. Otherwise no rate is exceeded, all sets are empty and all
 * packets are to this host, unless the question assumes something else. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/config.h"
#include "common/policy.h"
#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"

static __always_inline bool is_test(void)
{
	return marker_is(MARK_TEST, 1);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy_test);
} test SEC(".maps");

static __always_inline struct policy_test *test_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&test, &zero);
}

static __always_inline bool test_is_live(void)
{
	struct policy_test *t = test_get();

	return t && t->live;
}

/* Notes a rule that only counted. */
static __always_inline void test_counted(bool counts, __u32 index)
{
	struct policy_test *t = test_get();

	if (!t || !counts)
		return;
	if (t->counted < 5)
		t->first_counted[t->counted] = index;
	t->counted++;
}

static __always_inline void test_rule(__u32 index)
{
	struct policy_test *t = test_get();

	if (t)
		t->rule = index;
}

static __always_inline void test_answer(__u32 reason)
{
	struct policy_test *t = test_get();

	if (t)
		t->reason = reason;
}
