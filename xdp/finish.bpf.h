/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of the pipeline: counts the reason, records a sample and a drop, and returns the
 * verdict. */
#pragma once

#include "xdp/event.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/sample.bpf.h"
#include "xdp/tables.bpf.h"
#include "xdp/test.bpf.h"

/* The verdict of reasons that do not simply pass or drop. */
#define VERDICT_CASE_PASS(symbol)
#define VERDICT_CASE_DROP(symbol)
#define VERDICT_CASE_TX(symbol) \
	case REASON_##symbol:   \
		return XDP_TX;
#define VERDICT_CASE_REDIRECT(symbol) \
	case REASON_##symbol:         \
		return XDP_REDIRECT;
#define VERDICT_CASE_SENT(symbol) \
	case REASON_##symbol:     \
		return pkt->verdict;
#define VERDICT_CASE(symbol, name, verdict, group, text) VERDICT_CASE_##verdict(symbol)

static __always_inline int verdict(const struct packet *pkt, int reason)
{
	switch (reason) {
		WEIR_REASONS(VERDICT_CASE)
	default:
		return reason >= REASON_DROP_FIRST ? XDP_DROP : XDP_PASS;
	}
}

/* Packets of reject rules are recorded before their answer overwrites them: act.bpf.h. */
static __always_inline bool is_of_reject(int reason)
{
	return policy.rejects && (reason == REASON_PASS_REPLY || reason == REASON_DROP_REJECT);
}

/* As count(), for any reason. */
static __always_inline void count_any(struct xdp_md *ctx, const struct packet *pkt, int reason)
{
	struct counter *counter = counter_of(iface_number(ctx), reason);
	__u32 share;

	if (!counter)
		return;
	counter_add(counter, pkt->length);
	share = chosen_share();
	if (unlikely(share) && !is_of_reject(reason))
		take_chosen(ctx, counter, share, reason, pkt->decided_by - 1, pkt->length);
}

/* The counter of the rule that dropped the packet. A rule that passed it to a service is not the
 * one. */
static __always_inline __u32 dropped_by(const struct packet *pkt, int reason)
{
	bool by_rule = reason == REASON_DROP_RULE || reason == REASON_DROP_REJECT ||
		       reason == REASON_DROP_REDIRECT;

	return by_rule ? pkt->decided_by - 1 : EVENT_NO_RULE;
}

static __always_inline int finish(struct xdp_md *ctx, struct packet *pkt, int reason)
{
	if (unlikely(!pkt->length))
		pkt->length = bpf_xdp_get_buff_len(ctx);
	if (is_test()) {
		test_answer(reason);
		return verdict(pkt, reason);
	}
	count_any(ctx, pkt, reason);
	if (reason >= REASON_DROP_FIRST)
		event(ctx, reason, dropped_by(pkt, reason));
	return verdict(pkt, reason);
}

/* After a tail call that failed. */
static __always_inline int finish_lost(struct xdp_md *ctx)
{
	if (is_test()) {
		test_answer(REASON_DROP_PROGRAM);
		return XDP_DROP;
	}
	count(ctx, iface_number(ctx), REASON_DROP_PROGRAM, EVENT_NO_RULE,
	      bpf_xdp_get_buff_len(ctx));
	event(ctx, REASON_DROP_PROGRAM, EVENT_NO_RULE);
	return XDP_DROP;
}
