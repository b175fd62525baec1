/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of the pipeline: counts the reason, samples a drop, and returns the verdict. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/event.bpf.h"
#include "xdp/marker.bpf.h"
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

static __always_inline int finish(struct xdp_md *ctx, struct packet *pkt, int reason)
{
	if (unlikely(!pkt->length))
		pkt->length = bpf_xdp_get_buff_len(ctx);
	if (is_test()) {
		test_answer(reason);
		return verdict(pkt, reason);
	}
	count(ctx, reason, pkt->length);
	if (reason >= REASON_DROP_FIRST)
		event(ctx, reason, pkt->dropped_by - 1); /* none: EVENT_NO_RULE */
	return verdict(pkt, reason);
}

/* After a tail call that failed. */
static __always_inline int finish_lost(struct xdp_md *ctx)
{
	if (is_test()) {
		test_answer(REASON_DROP_PROGRAM);
		return XDP_DROP;
	}
	count(ctx, REASON_DROP_PROGRAM, bpf_xdp_get_buff_len(ctx));
	event(ctx, REASON_DROP_PROGRAM, EVENT_NO_RULE);
	return XDP_DROP;
}
