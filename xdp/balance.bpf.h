/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "balance": takes a packet of a service to one of its backends. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/forward.bpf.h"
#include "xdp/icmp.bpf.h"
#include "xdp/pathmtu.bpf.h"
#include "xdp/pins.bpf.h"

static __always_inline void test_backend(const struct packet *pkt, __u32 backend)
{
	struct policy_test *t = is_test() ? test_get() : NULL;

	if (t) {
		t->service = pkt->service;
		t->backend = backend;
		t->passed = pkt->passed;
	}
}

static __always_inline void count_dropped(__u32 id, int reason)
{
	struct service_counter *c = service_counter(id);
	__u32 which = reason - REASON_DROP_NO_BACKEND;

	if (c && which < SERVICE_DROPS)
		c->dropped[which]++;
}

/* Counted by service, and by backend if there is one. */
static __always_inline void service_count(const struct service *s, const struct packet *pkt,
					  __u32 backend, int reason)
{
	if (is_test())
		return;
	if (reason >= REASON_DROP_FIRST) {
		count_dropped(s->id, reason);
	} else if (reason == REASON_PASS_SERVICE || reason == REASON_PASS_HERE) {
		bool first = opens(pkt);

		count_sent(s->id, pkt->length, first, pkt->quoted);
		count_sent(backend, pkt->length, first, pkt->quoted);
	}
}

static __always_inline int to_backend(struct xdp_md *ctx, struct packet *pkt,
				      const struct service *s, __u32 *ret_backend)
{
	struct backend *to;
	__u64 hash;

	test_backend(pkt, BACKEND_NONE);
	if (unlikely(pkt->fragment == FRAGMENT_LATER) && s->hash != SERVICE_HASH_SOURCE)
		return REASON_DROP_SERVICE_FRAGMENT;
	*ret_backend = choose(pkt, s, &hash);
	test_backend(pkt, *ret_backend);
	if (unlikely(*ret_backend == BACKEND_NONE))
		return REASON_DROP_NO_BACKEND;
	if (!(to = backend_at(*ret_backend)))
		return REASON_DROP_INTERNAL;
	return forward(ctx, pkt, s, to, hash);
}

/* In a frame to another station: the packet is treated as if there were no service. */
static __always_inline int leave_foreign(struct packet *pkt)
{
	if (pkt->service != NO_SERVICE || service_find(pkt, BY_DESTINATION) != NO_SERVICE)
		tally(TALLY_FOREIGN);
	return pkt->passed;
}

/* Also if the service has left nat or fullnat: then weir_nat returns packets of other
 * connections. */
static __always_inline bool is_for_nat(const struct packet *pkt, const struct service *s)
{
	if (marker_is(MARK_NATS, 0) || pkt->returned)
		return false;
	return service_mode_does(s->mode) & MODE_NAT || marker_is(MARK_NATS, 2);
}

/* Decides a packet that passed and is for a service, or is ICMP and may follow one: a reason, or
 * TO_NAT. */
static __always_inline int balance(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 backend = BACKEND_NONE;
	const struct service *s;
	int reason;

	/* Broadcasts on the link are not sent on (RFC 1812 section 5.3.4): each balancer there
	 * receives them. */
	if (unlikely(!is_for_one(ctx)))
		return pkt->passed;
	if (unlikely(!is_for_us(ctx)))
		return leave_foreign(pkt);
	if (pkt->service == NO_SERVICE && is_fragment_of_nat(pkt))
		return TO_NAT;
	if (unlikely(pkt->service == NO_SERVICE)) {
		if (has_tunnels() && is_too_big(pkt) && (reason = path_notice(ctx, pkt)) != GO_ON)
			return reason;
		if ((reason = vip_icmp(ctx, pkt)) != GO_ON)
			return reason;
	} else if (unlikely(is_martian(pkt))) {
		return REASON_DROP_MARTIAN;
	}
	if (!(s = service_at((__u32)pkt->service)))
		return REASON_DROP_INTERNAL;
	if (is_for_nat(pkt, s))
		return TO_NAT;
	if (!marker_is(MARK_NATS, 0) && service_mode_does(s->mode) & MODE_NAT)
		return REASON_DROP_FORWARD;
	reason = to_backend(ctx, pkt, s, &backend);
	service_count(s, pkt, backend, reason);
	return reason;
}
