// SPDX-License-Identifier: GPL-2.0-only
// The pipeline: one packet through all stages.
//
// Two programs know the way of a packet. `weir_short` reads what most packets are; it leaves all
// others to `weir_policy`, the general program, which reads any frame. `weir_balance` continues
// with packets of services, `weir_nat` with those of services in nat or fullnat; before a policy
// with these, `weir_nat_answer` sends the answers of backends to their clients.
//
// Every policy is an instance of this object, loaded around its own tables. The features that it
// does not use are switched off by markers and in `policy`.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/answer.bpf.h"
#include "xdp/balance.bpf.h"
#include "xdp/classify.bpf.h"
#include "xdp/default.bpf.h"
#include "xdp/finish.bpf.h"
#include "xdp/iface.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/nat-any.bpf.h"
#include "xdp/nat.bpf.h"
#include "xdp/overlay.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/short.bpf.h"

static __always_inline int decide(struct xdp_md *ctx, struct packet *pkt, struct matrix *m)
{
	/* Without such rules what the overlay decides costs no rows. */
	const bool early = policy.always;
	int reason, rule;

	pkt->iface = !marker_is(MARK_NAMED, 0) ? policy_class(iface_number(ctx)) : 0;
	if (unlikely((reason = parse(ctx, pkt)) != GO_ON))
		return marker_is(MARK_MALFORMED_PASS, 1) ? REASON_PASS_MALFORMED : reason;
	/* A forwarded packet is not discovery: a neighbour would not accept it with a lower hop
	 * limit. */
	if (unlikely(pkt->neighbour) && is_in_transit(ctx, pkt))
		pkt->neighbour = 0;
	if ((reason = answer(ctx, pkt)) != GO_ON)
		return reason;
	if (unlikely(!pkt->family))
		pkt->length = bpf_xdp_get_buff_len(ctx);
	if (early && !classify_prepare(pkt, m))
		return REASON_DROP_INTERNAL;
	if (policy.always) {
		if ((rule = classify(ctx, pkt, m, 0, policy.always)) != GO_ON)
			return act(ctx, pkt, rule);
	}
	if ((reason = overlay(pkt)) != GO_ON)
		return reason;
	if ((reason = fragments(pkt)) != GO_ON)
		return reason;
	if (policy.rules > policy.always) {
		if (!early && !classify_prepare(pkt, m))
			return REASON_DROP_INTERNAL;
		if ((rule = classify(ctx, pkt, m, policy.always, policy.rules)) != GO_ON)
			return act(ctx, pkt, rule);
	}
	return default_verdict(ctx, pkt);
}

/* The program of most packets. Those that it does not take begin again. */
static __always_inline int begin(struct xdp_md *ctx, bool balances, bool nats)
{
	int verdict = short_way(ctx, balances, nats);

	if (verdict != GO_ON)
		return verdict;
	bpf_tail_call_static(ctx, &stages, STAGE_GENERAL);
	return finish_lost(ctx);
}

SEC("xdp/policy")
int weir_short(struct xdp_md *ctx)
{
	return begin(ctx, false, false);
}

/* For a policy with services: the other program does not lose the registers that these need. */
SEC("xdp/policy")
int weir_short_balance(struct xdp_md *ctx)
{
	return begin(ctx, true, false);
}

/* With services in nat or fullnat. */
SEC("xdp/policy")
int weir_short_nat(struct xdp_md *ctx)
{
	return begin(ctx, true, true);
}

/* For tests that must know which packets take this program. */
static __always_inline void note_general(void)
{
	struct policy_test *t = is_test() ? test_get() : NULL;

	if (t)
		t->general = 1;
	else if (marker_is(MARK_HANDED_ON, 1))
		tally(TALLY_GENERAL);
}

SEC("xdp/policy")
int weir_policy(struct xdp_md *ctx)
{
	struct packet *pkt = packet_new();
	struct matrix m = {};
	int reason;

	if (!pkt)
		return XDP_DROP;
	note_general();
	reason = decide(ctx, pkt, &m);
	if (policy.services && policy_holds(pkt) && for_services(reason)) {
		pkt->passed = reason;
		pkt->service = service_find(pkt, BY_PACKET);
		if (pkt->service != NO_SERVICE || is_icmp(pkt) || is_fragment_of_nat(pkt)) {
			bpf_tail_call_static(ctx, &stages, STAGE_BALANCE);
			reason = REASON_DROP_PROGRAM;
		}
	}
	return finish(ctx, pkt, reason);
}

/* Continues with a packet of a service, or with ICMP that may be for one. */
SEC("xdp/policy")
int weir_balance(struct xdp_md *ctx)
{
	struct packet *pkt = packet_kept();
	int reason;

	if (!pkt)
		return XDP_DROP;
	reason = balance(ctx, pkt);
	if (reason == TO_NAT) {
		bpf_tail_call_static(ctx, &stages, STAGE_NAT);
		reason = REASON_DROP_PROGRAM;
	}
	if (unlikely(pkt->only_service) && reason == pkt->passed)
		reason = REASON_DROP_DEFAULT;
	return finish(ctx, pkt, reason);
}

/* Precedes the general program. */
SEC("xdp/policy")
int weir_nat_answer(struct xdp_md *ctx)
{
	int verdict = nat_before(ctx);

	if (verdict != GO_ON)
		return verdict;
	bpf_tail_call_static(ctx, &stages, STAGE_NAT_ANSWER_ANY);
	return finish_lost(ctx);
}

/* Continues with a packet that has passed, from the short program or from `weir_balance`. */
SEC("xdp/policy")
int weir_nat(struct xdp_md *ctx)
{
	struct packet *pkt = packet_kept();
	int verdict;

	if (!pkt)
		return XDP_DROP;
	verdict = nat_after(ctx, pkt);
	if (verdict != GO_ON)
		return verdict;
	if (pkt->family)
		bpf_tail_call_static(ctx, &stages, STAGE_NAT_ANY);
	else
		bpf_tail_call_static(ctx, &stages, STAGE_GENERAL);
	return finish_lost(ctx);
}

/* After weir_nat_answer, for what is not common. */
SEC("xdp/policy")
int weir_nat_answer_any(struct xdp_md *ctx)
{
	struct packet *pkt = packet_new();
	int reason;

	if (!pkt)
		return XDP_DROP;
	if (parse(ctx, pkt) != GO_ON || (reason = nat_answer_any(ctx, pkt)) == GO_ON) {
		bpf_tail_call_static(ctx, &stages, STAGE_POLICY);
		return finish_lost(ctx);
	}
	return finish(ctx, pkt, reason);
}

/* After weir_nat, for what is not common. */
SEC("xdp/policy")
int weir_nat_any(struct xdp_md *ctx)
{
	struct packet *pkt = packet_kept();
	int reason;

	if (!pkt)
		return XDP_DROP;
	reason = nat_forward_any(ctx, pkt, service_at((__u32)pkt->service));
	if (reason == GO_ON) {
		pkt->returned = 1;
		bpf_tail_call_static(ctx, &stages, STAGE_BALANCE);
		reason = REASON_DROP_PROGRAM;
	}
	if (unlikely(pkt->only_service) && reason == pkt->passed)
		reason = REASON_DROP_DEFAULT;
	return finish(ctx, pkt, reason);
}

char _license[] SEC("license") = "GPL";
