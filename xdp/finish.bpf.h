/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of the pipeline: counts the reason, samples a drop, and returns the verdict. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/event.bpf.h"
#include "xdp/test.bpf.h"

static __always_inline int verdict(const struct packet *pkt, int reason)
{
	__u64 bit = 1ull << (reason & 63);

	if (reason >= REASON_DROP_FIRST)
		return XDP_DROP;
	if (bit & REASONS_TX)
		return XDP_TX;
	if (bit & REASONS_REDIRECT)
		return XDP_REDIRECT;
	return bit & REASONS_SENT ? pkt->verdict : XDP_PASS;
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
