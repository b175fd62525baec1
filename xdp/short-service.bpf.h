/* SPDX-License-Identifier: GPL-2.0-only */
/* The short way for services: sends a packet to its backend, with the values that have been read.
 *
 * The general program gets ICMP, services that are not in buckets, frames to other stations,
 * sources that no packet from outside has, partial checksums, frames with bytes after their packet,
 * and packets that expire or are too long: all this is known before a pin or the frame is written.
 * */
#pragma once

#include "xdp/balance.bpf.h"
#include "xdp/nat-steady.bpf.h"
#include "xdp/short-frame.bpf.h"
#include "xdp/short-read.bpf.h"

/* The state of a packet and its service before anything is written. */
struct trip {
	const struct service *s;
	struct backend *to;
	__u64 hash;    /* hash of the flow, as its service hashes */
	__u32 service; /* its number */
	__u32 backend; /* the number of `to` */
	__u64 choice;  /* result of choose_unstable(); 0: the slot is stable, no pin counts */
	__u64 tuple;   /* if a pin counts: hash of the flow's tuple */
	__u64 pin;     /* if a pin counts: the pin that was found */
};

static __always_inline __u32 heard_common(const struct key k)
{
	if (k.base >= BASE_UDP)
		return FLOW_GOES_ON | HEARD_UDP;
	return is_syn(k) ? FLOW_OPENS : k.base & 0x05 ? FLOW_CLOSES : FLOW_GOES_ON;
}

/* ---- whose ----------------------------------------------------------------------------------- */

/* Its number and 1; 0: it is in no bucket. */
static __always_inline __u32 vip_of(const __u8 *ip, const int family)
{
	__u32 key = vip_key(l4_of(ip, family)[1], proto_of(ip, family));

	return family == 4 ? vip_service4(NULL, addresses_of(ip, 4)[1], key)
			   : vip_service6(NULL, (const void *)(addresses_of(ip, 6) + 4), key);
}

/* Is the frame addressed only to this station? */
static __always_inline bool is_ours(const __u8 *frame, __u32 number)
{
	__u64 own = knobs.station[number & (WEIR_IFACES - 1)];
	__u64 mac = station_of(frame);

	if (!is_between_two((const void *)frame))
		return false;
	return !own || is_own_station(own, mac) || is_test();
}

/* May the address belong to a service? */
static __always_inline bool is_member(const int family, __u64 hi, __u64 lo)
{
	__u32 number = family == 4 ? table4_row(NULL, SIDE_MEMBER, hi, false)
				   : table6_row(NULL, SIDE_MEMBER, hi, lo, false);
	const __u64 *row = matrix_row(NULL, MATRIX_MEMBERS, number);

	/* One word of services, or the summary of several. */
	return !row || *row;
}

static __always_inline bool is_answerable_common(const struct key k, const int family)
{
	if (family == 4)
		return is_answerable4(k.src_hi) && (__u32)k.src_hi != (__u32)k.dst_hi;
	return is_answerable6(k.src_hi, k.src_lo) && (k.src_hi != k.dst_hi || k.src_lo != k.dst_lo);
}

/* Like is_martian(). */
static __always_inline bool is_martian_common(const struct key k, const int family)
{
	if (!is_answerable_common(k, family))
		return true;
	if (k.base < BASE_UDP && k.base & 0x10)
		return false;
	return is_member(family, k.src_hi, k.src_lo);
}

/* ---- where to -------------------------------------------------------------------------------- */

static __always_inline __u64 tuple_of(const struct service *s, const __u8 *ip, const int family)
{
	const __u32 *src = addresses_of(ip, family), *dst = src + (family == 4 ? 1 : 4);
	__u32 ports = *(const __u32 *)l4_of(ip, family);

	return flow_tuple(&s->key, family, src, dst, ports, proto_of(ip, family));
}

/* false: there is no such slot. */
static __always_inline bool choose_common(const struct key k, const int family, const __u8 *ip,
					  struct trip *t)
{
	const struct service *s = t->s;
	bool source = s->hash == SERVICE_HASH_SOURCE;
	__u64 word, pin; /* separate, because its address is taken */
	const __u64 *slot;

	t->hash = source ? flow_source(&s->key, family, addresses_of(ip, family))
			 : tuple_of(s, ip, family);
	if (!(slot = slot_at(s->first_slot + slot_of(t->hash, s->size))))
		return false;
	word = *(const volatile __u64 *)slot;
	t->backend = slot_owner(word);
	t->choice = 0;
	if (likely(!slot_former(word)) || (s->udp_move && k.base == BASE_UDP))
		return true;
	pin = 0;
	t->tuple = source ? tuple_of(s, ip, family) : t->hash;
	t->choice = choose_unstable(t->service, word, t->tuple, heard_common(k), &pin);
	t->pin = pin;
	t->backend = pin_backend(t->choice);
	return true;
}

/* Selects the backend. Without a next hop no packet is short enough; uncommon packets are left to
 * the general program. */
static __always_inline bool find_backend(const struct xdp_md *ctx, struct trip *t)
{
	t->to = backend_at(t->backend);
	return t->to && !(t->to->no_xmit && t->to->ifindex != ctx->ingress_ifindex);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* How a frame is sent: constants, so that each path has no branches. */
struct shape {
	enum service_mode mode;
	int inside, outside; /* families */
	__u32 link;          /* bytes of the link header */
};

static __always_inline bool put_headers_common(struct xdp_md *ctx, const struct trip *t,
					       struct outer o, const struct shape is, __u32 vlan)
{
	const __u32 outer = outer_bytes(is.mode, is.outside);
	__u8 *frame = (void *)(long)ctx->data;

	if (frame + is.link + outer > (__u8 *)(long)ctx->data_end)
		return false;
	write_link(frame, t->to, vlan, is.outside == 4 ? ETH_P_IP : ETH_P_IPV6);
	if (outer && is.outside == 4)
		write_tunnel4(frame + is.link, t->to, o, is.mode);
	else if (outer)
		write_tunnel6(frame + is.link, t->to, o, is.mode);
	return true;
}

static __always_inline bool put_frame(struct xdp_md *ctx, const struct key k,
				      const struct vip_place at, const struct trip *t,
				      const struct shape is, __u32 vlan)
{
	const __u32 outer = outer_bytes(is.mode, is.outside);
	int move = (int)(at.ip - at.frame) - (int)(is.link + outer);
	struct outer o = {
		.hash = t->hash,
		.length = k.length,
		.proto = outer_proto(is.inside, is.mode),
		.tos = is.inside == 4 ? hop_less4((void *)at.ip) : hop_less6((void *)at.ip),
	};

	if (outer_is_summed(is.mode, is.outside))
		o.inner = inner_of(is.inside, pseudo_common(at.ip, k, is.inside), at.ip);
	if ((outer || move) && bpf_xdp_adjust_head(ctx, move))
		return false;
	return put_headers_common(ctx, t, o, is, vlan);
}

/* UDP without a checksum: its sum is not known. */
static __always_inline bool is_unsummed(const struct key k, const struct vip_place at,
					const int family)
{
	return k.base == BASE_UDP && !l4_of(at.ip, family)[3];
}

static __always_inline int send_shaped(struct xdp_md *ctx, const struct key k,
				       const struct vip_place at, const struct trip *t,
				       const struct shape is, __u32 vlan)
{
	if (is_too_long(t->to, k.length + outer_bytes(is.mode, is.outside)))
		return GO_ON;
	if (outer_is_summed(is.mode, is.outside) && is_unsummed(k, at, is.inside))
		return GO_ON;
	if (unlikely(t->choice >> CHOICE_SHIFT))
		choice_write(t->service, t->tuple, t->choice, t->pin);
	return put_frame(ctx, k, at, t, is, vlan) ? REASON_PASS_SERVICE : REASON_DROP_FORWARD;
}

static __always_inline int send_by_mode(struct xdp_md *ctx, const struct key k, const int family,
					const struct vip_place at, const struct trip *t,
					const __u32 link, __u32 vlan)
{
#define SEND(mode, outside) \
	send_shaped(ctx, k, at, t, (struct shape){mode, family, outside, link}, vlan)
#define SEND_TUNNEL(symbol, ...)                  \
	if (mode == (symbol) && has_mode(symbol)) \
		return outside == 4 ? SEND(symbol, 4) : SEND(symbol, 6);
	__u32 mode = t->s->mode, outside = *(const volatile __u8 *)&t->to->family;

	/* The mode first: then a mode that no service has costs nothing. */
	WORDS_OF_TUNNELS(SEND_TUNNEL)
	if (mode == SERVICE_DR && has_mode(SERVICE_DR))
		return SEND(SERVICE_DR, family);
	return GO_ON;
#undef SEND_TUNNEL
#undef SEND
}

/* Writes the pin and the frame: REASON_PASS_SERVICE. REASON_DROP_FORWARD: the kernel had no room,
 * or the headers are not in the first buffer. GO_ON: the packet is too long or its sum is not
 * known, and nothing is written. */
static __always_inline int send_by_link(struct xdp_md *ctx, const struct key k, const int family,
					const struct vip_place at, const struct trip *t)
{
	__u32 vlan = *(const volatile __u16 *)&t->to->vlan;

	return likely(!vlan) ? send_by_mode(ctx, k, family, at, t, ETH_HLEN, 0)
			     : send_by_mode(ctx, k, family, at, t, LINK_BYTES, vlan);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Notes the way of a test packet. Global: its use of the stack within test programs made kernel
 * 6.18 refuse some ("verifier bug: stack slot"). */
__noinline int test_trip(__u32 service, __u64 hash, __u32 backend, __u32 passed)
{
	const struct service *s = service_at(service);
	struct policy_test *test = test_get();
	__u32 index;
	const __u64 *slot;

	if (!s || !test)
		return 0;
	index = slot_of(hash, s->size);
	slot = slot_at(s->first_slot + index);
	test_slot(index, slot ? *slot : 0);
	test->service = service;
	test->backend = backend;
	test->passed = passed;
	return 0;
}

/* Sends it back on the interface of arrival, or through another device. */
static __always_inline bool leaves(struct xdp_md *ctx, const struct backend *to, __s32 *ret_verdict)
{
	*ret_verdict = XDP_TX;
	if (to->ifindex == ctx->ingress_ifindex)
		return true;
	*ret_verdict = XDP_REDIRECT;
	return bpf_redirect_map(&egress, to->ifindex, 0) == XDP_REDIRECT;
}

static __always_inline struct fate send_common(struct xdp_md *ctx, const struct key k,
					       const int family, const struct vip_place at,
					       const struct trip *t, struct fate f)
{
	if (is_test())
		test_trip(t->service, t->hash, t->backend, f.reason);
	f.reason = send_by_link(ctx, k, family, at, t);
	if (unlikely(f.reason == GO_ON))
		return f;
	if (likely(f.reason == REASON_PASS_SERVICE)) {
		if (likely(leaves(ctx, t->to, &f.verdict))) {
			if (is_test())
				return f;
			count_sent(t->s->id, k.length, is_syn(k), false);
			count_sent(t->backend, k.length, is_syn(k), false);
			return f;
		}
		f.reason = REASON_DROP_NO_NEXT_HOP;
	}
	if (!is_test())
		count_dropped(t->s->id, f.reason);
	return f;
}

/* Leaves a packet of nat or fullnat to weir_nat, which counts it and the rule that passed it. */
static __always_inline struct fate hand_to_nat(struct xdp_md *ctx, struct fate f)
{
	struct packet *pkt = packet_kept();

	if (!pkt)
		return ASK;
	pkt->family = 0;
	pkt->decided_by = f.counter + 1;
	pkt->passed = f.reason;
	bpf_tail_call_static(ctx, &stages, STAGE_NAT);
	return (struct fate){.reason = REASON_DROP_PROGRAM, .counter = EVENT_NO_RULE};
}

/* A packet for an end of nat or fullnat. */
static __always_inline struct fate translate_common(struct xdp_md *ctx, const struct view v,
						    const int family, const struct vip_place at,
						    const struct arrival p, __u64 end,
						    const struct nat_use *use, struct fate f)
{
	const struct nat_packet packet = {
		.at = at, .k = {.base = v.base, .length = f.length}, .from = p};
	int reason = nat_forward_steady(ctx, family, packet, end, use, &f.verdict);

	if (likely(reason != NAT_LEAVE)) {
		f.reason = reason;
		return f;
	}
	if (!is_ours(at.frame, p.number) || is_martian_common(key_of(v, family), family))
		return ASK;
	return hand_to_nat(ctx, f);
}

/* Decides a packet that passed for f.reason. */
static __always_inline struct fate balance_common(struct xdp_md *ctx, const struct key k,
						  const int family, const struct vip_place at,
						  const struct arrival p, struct fate f)
{
	__u32 service;
	struct trip t;

	if (k.base == BASE_ICMP)
		return ASK;
	if (!(service = vip_of(at.ip, family)))
		return TABLE_IS(NULL, VIP_CONSTANT(VIPS_ALL), 1) ? f : ASK;
	t.service = service - 1;
	if (!(t.s = service_at(t.service)) || !is_ours(at.frame, p.number) ||
	    is_martian_common(k, family))
		return ASK;
	if (!is_ready(ctx, k, family, at) || !choose_common(k, family, at.ip, &t) ||
	    !find_backend(ctx, &t))
		return ASK;
	return send_common(ctx, k, family, at, &t, f);
}
