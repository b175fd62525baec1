/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "event": samples of dropped packets for `weir watch`.
 *
 * At most one sample a jiffy and CPU is taken, so that a flood costs one comparison a packet. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "xdp/maps.bpf.h"
#include "xdp/packet.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WEIR_EVENTS_BYTES);
} events SEC(".maps");

struct event_pace {
	__u64 last; /* jiffies64 of the last event of this CPU */
	__u32 missed;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_pace);
} event_pace SEC(".maps");

/* Is it this packet's turn? Counts it as missed if not. */
static __always_inline struct event_pace *event_turn(__u64 now)
{
	__u32 zero = 0;
	struct event_pace *pace = bpf_map_lookup_elem(&event_pace, &zero);

	if (!pace)
		return NULL;
	if (pace->last == now) {
		pace->missed++;
		return NULL;
	}
	pace->last = now;
	return pace;
}

/* rule: as in the record; pace NULL: a record of `log`. */
static __always_inline void event_fill(struct xdp_md *ctx, struct event *event, __u32 reason,
				       __u32 rule, __u32 snap, const struct event_pace *pace)
{
	__u32 length = bpf_xdp_get_buff_len(ctx), captured = snap;

	event->time_ns = bpf_ktime_get_ns();
	event->ifindex = ctx->ingress_ifindex;
	event->reason = reason;
	event->length = length;
	event->missed = pace ? pace->missed : 0;
	event->rule = rule;
	event->logged = !pace;
	if (captured > length)
		captured = length;
	captured = BOUND_LENGTH(captured, WEIR_SNAP_MAX);
	event->captured = bpf_xdp_load_bytes(ctx, 0, event->packet, captured) ? 0 : captured;
}

/* A sampled drop. Global, so that the rare path is verified once and stays out of the common one.
 * Counts it as missed if the ring is full. */
__noinline int event_send(struct xdp_md *ctx, __u32 reason, __u32 rule)
{
	struct event_pace *pace = event_turn(bpf_jiffies64());
	struct event *event;

	if (!pace)
		return 0;
	if (!(event = bpf_ringbuf_reserve(&events, sizeof(*event), 0))) {
		pace->missed++;
		return 0;
	}
	event_fill(ctx, event, reason, rule, knobs.snap, pace);
	pace->missed = 0;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

static __always_inline void event(struct xdp_md *ctx, __u32 reason, __u32 rule)
{
	if (unlikely(knobs.watch) && bpf_jiffies64() < knobs.watch)
		event_send(ctx, reason, rule);
}
