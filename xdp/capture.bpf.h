/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "capture": copies whole frames to a ring, of the packets that `weir capture` asks for. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "common/capture.h"
#include "common/counters.h"
#include "common/event.h"
#include "xdp/count.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WEIR_CAPTURED_BYTES);
} captured SEC(".maps");

_Static_assert(WEIR_REASON_COUNT <= 128, "a bit for each reason");

/* Decided before a byte is copied. */
static __always_inline bool capture_wants(const struct xdp_md *ctx, __u32 reason, __u32 rule)
{
	if (!(knobs.capture_reasons[reason >> 6 & 1] >> (reason & 63) & 1))
		return false;
	if (knobs.capture_iface && knobs.capture_iface != iface_number(ctx))
		return false;
	return knobs.capture_rule == EVENT_NO_RULE || knobs.capture_rule == rule;
}

/* room: a power of two, a constant. -1: the ring is full. */
static __always_inline int capture_copy(struct xdp_md *ctx, const struct captured *head, __u64 room)
{
	struct captured *record = bpf_ringbuf_reserve(&captured, sizeof(*record) + room, 0);
	__u32 length = BOUND_LENGTH(head->captured, room);

	if (!record)
		return -1;
	*record = *head;
	if (bpf_xdp_load_bytes(ctx, 0, record + 1, length))
		record->captured = 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

/* share: of all packets, in the record. Global, so that it is verified once. */
__noinline int capture_write(struct xdp_md *ctx, __u32 reason, __u32 rule, __u64 bytes, __u32 share)
{
	struct captured head = {.time_ns = bpf_ktime_get_ns(), .reason = reason, .rule = rule};
	int failed;

	if (!capture_wants(ctx, reason, rule))
		return 0;
	head.ifindex = ctx->ingress_ifindex;
	head.bytes = bytes;
	head.share = share;
	head.length = bpf_xdp_get_buff_len(ctx);
	head.captured = head.length < knobs.capture_snap ? head.length : knobs.capture_snap;
	if (!head.captured)
		return 0;
	if (head.captured <= 128)
		failed = capture_copy(ctx, &head, 128);
	else if (head.captured <= 512)
		failed = capture_copy(ctx, &head, 512);
	else if (head.captured <= 2048)
		failed = capture_copy(ctx, &head, 2048);
	else if (head.captured <= 16384)
		failed = capture_copy(ctx, &head, 16384);
	else
		failed = capture_copy(ctx, &head, 131072);
	if (failed)
		tally(TALLY_CAPTURED_LOST);
	return 0;
}
