/* SPDX-License-Identifier: GPL-2.0-only */
/* Stages "sample" and "capture": record a share of all packets, chosen by their counters. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "common/sample.h"
#include "xdp/capture.bpf.h"
#include "xdp/count.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WEIR_SAMPLES_BYTES);
} samples SEC(".maps");

/* Global, so that the rare path is verified once and stays out of the common one. rule, bytes and
 * share: as in the record. The reader looks by the clock: waking it would cost more than the
 * record. */
__noinline int sample_write(struct xdp_md *ctx, __u32 reason, __u32 rule, __u64 bytes, __u32 share)
{
	__u64 length, captured = WEIR_SAMPLE_SNAP;
	struct sampled *s;
	__s64 failed;

	s = bpf_ringbuf_reserve(&samples, sizeof(*s), 0);
	if (!s) {
		tally(TALLY_SAMPLES_LOST);
		return 0;
	}
	s->time_ns = bpf_ktime_get_ns();
	s->ifindex = ctx->ingress_ifindex;
	s->reason = reason;
	s->rule = rule;
	s->share = share;
	s->bytes = bytes;
	length = bpf_xdp_get_buff_len(ctx);
	s->length = length;
	captured -= (captured - length) * is_less(length, captured);
	captured = BOUND_LENGTH(captured, WEIR_SAMPLE_SNAP);
	failed = bpf_xdp_load_bytes(ctx, 0, s->packet, captured);
	s->captured = captured & ~(failed >> 63);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline __u32 share_until(__u32 share, __u64 until, __u64 now)
{
	return now < until ? share : 0;
}

/* Samples or captures a packet by its number (sample_number()). Global, so that the common path has
 * one call. A reader that was killed ends no lease: its share goes with the first packet after it,
 * and the next ones do without this call. */
__noinline int take(struct xdp_md *ctx, __u32 reason, __u32 rule, __u64 bytes, __u32 number)
{
	__u64 now = bpf_jiffies64();
	__u32 sample = share_until(knobs.sample, knobs.sample_until, now);
	__u32 capture = share_until(knobs.capture, knobs.capture_until, now);
	__u32 larger = sample > capture ? sample : capture;

	if (unlikely(knobs.chosen > larger))
		knobs.chosen = larger;
	if (number < sample)
		sample_write(ctx, reason, rule, bytes, sample);
	if (number < capture)
		capture_write(ctx, reason, rule, bytes, capture);
	return 0;
}

/* Records the packet that this counter has counted last, if it is chosen. */
static __always_inline void take_chosen(struct xdp_md *ctx, const struct counter *counter,
					__u32 share, __u32 reason, __u32 rule, __u64 bytes)
{
	__u32 number = sample_number(counter->packets, counter->bytes, knobs.seed);

	if (number < share)
		take(ctx, reason, rule, bytes, number);
}

/* 0, unless packets are sampled or captured. */
static __always_inline __u32 chosen_share(void)
{
	return *(const volatile __u32 *)&knobs.chosen;
}

/* Counts the packet, and records it if it is chosen. number: of the interface; rule: as in the
 * record. Returns the reason, of which the verifier knows nothing any more while packets are
 * chosen: it would follow the rest once for each reason. */
static __always_inline int count(struct xdp_md *ctx, __u32 number, int reason, __u32 rule,
				 __u64 bytes)
{
	struct counter *counter = counter_of(number, reason);
	__u32 share;

	if (!counter)
		return reason;
	counter_add(counter, bytes);
	share = chosen_share();
	if (likely(!share))
		return reason;
	reason = (int)BOUND_FORGET((__u32)reason, bytes);
	take_chosen(ctx, counter, share, reason, rule, bytes);
	return reason;
}
