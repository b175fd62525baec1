/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of the pipeline: counts the reason, samples a drop, and returns the verdict. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/event.bpf.h"
#include "xdp/test.bpf.h"

static __always_inline int verdict(const struct packet *pkt, int reason)
{
	switch (reason) {
	case REASON_PASS_REPLY:
	case REASON_PASS_ECHO:
	case REASON_PASS_TOO_BIG:
	case REASON_PASS_TTL:
	case REASON_PASS_PATH_MTU:
		return XDP_TX;
	case REASON_PASS_REDIRECT:
		return XDP_REDIRECT;
	case REASON_PASS_SERVICE:
		return pkt->verdict;
	default:
		return reason >= REASON_DROP_FIRST ? XDP_DROP : XDP_PASS;
	}
}

static __always_inline int finish(struct xdp_md *ctx, struct packet *pkt, int reason)
{
	if (unlikely(!pkt->length))
		pkt->length = bpf_xdp_get_buff_len(ctx);
	if (config.test) {
		test_answer(reason);
		return verdict(pkt, reason);
	}
	count(ctx, reason, pkt->length);
	if (reason >= REASON_DROP_FIRST)
		event(ctx, pkt, reason);
	return verdict(pkt, reason);
}
