// SPDX-License-Identifier: GPL-2.0-only
// The pipeline: one packet through all stages. Every policy is an instance of this object, loaded with
// the features that it does not use switched off in `config`.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/count.bpf.h"
#include "xdp/event.bpf.h"
#include "xdp/overlay.bpf.h"
#include "xdp/parse.bpf.h"

const volatile struct config config = {};

static __always_inline int malformed(int reason)
{
	return config.malformed_pass ? REASON_PASS_MALFORMED : reason;
}

static __always_inline int decide(struct xdp_md *ctx, struct packet *pkt)
{
	int reason = parse(ctx, pkt);

	if (unlikely(reason != GO_ON))
		return malformed(reason);
	if ((reason = overlay(pkt)) != GO_ON)
		return reason;
	if (!pkt->family)
		return REASON_PASS_NOT_IP;
	return pkt->neighbour ? REASON_PASS_ND : REASON_PASS_DEFAULT;
}

SEC("xdp")
int weir_policy(struct xdp_md *ctx)
{
	struct packet pkt = {};
	int reason = decide(ctx, &pkt);

	if (unlikely(!pkt.length))
		pkt.length = bpf_xdp_get_buff_len(ctx);
	count(ctx, reason, pkt.length);
	if (reason < REASON_DROP_FIRST)
		return XDP_PASS;
	event(ctx, reason);
	return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
