// SPDX-License-Identifier: GPL-2.0-only
// The program on an interface: selects the active or the previous policy and jumps to it.
//
// It contains no policy, so it is never replaced. It also ends a trial in the kernel.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/sample.bpf.h"

static __always_inline int pass(struct xdp_md *ctx, enum weir_reason reason)
{
	count(ctx, iface_number(ctx), reason, EVENT_NO_RULE, bpf_xdp_get_buff_len(ctx));
	return XDP_PASS;
}

// knobs.bypass is the latest end of all bypasses; their interfaces are read only during a bypass.
static __always_inline bool bypassed(const struct xdp_md *ctx)
{
	return bpf_jiffies64() < knobs.bypass_until[iface_number(ctx)];
}

// After a trial, the interfaces that it attached count as detached: a login that it cut off works
// again.
static __always_inline bool went_with_trial(const struct xdp_md *ctx)
{
	return knobs.brought && knobs.brought >> iface_number(ctx) & 1;
}

SEC("xdp")
int weir_root(struct xdp_md *ctx)
{
	if (unlikely(knobs.bypass) && bypassed(ctx))
		return pass(ctx, REASON_PASS_BYPASS);
	// Constant slot numbers: a variable one costs a retpoline.
	if (knobs.deadline && bpf_jiffies64() > knobs.deadline) {
		if (went_with_trial(ctx))
			return pass(ctx, REASON_PASS_BYPASS);
		bpf_tail_call_static(ctx, &progs, PROG_PREVIOUS);
	} else {
		bpf_tail_call_static(ctx, &progs, PROG_ACTIVE);
	}
	return pass(ctx, REASON_PASS_NO_POLICY);
}

char _license[] SEC("license") = "GPL";
