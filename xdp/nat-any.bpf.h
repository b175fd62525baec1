/* SPDX-License-Identifier: GPL-2.0-only */
/* Sends packets of nat and fullnat that are not common, in both directions.
 *
 * They have options or extension headers, are fragments, have partial checksums, are of SCTP, are
 * answered here, or their client has no peer. Everything is decided before the frame is written. */
#pragma once

#include "xdp/balance.bpf.h"
#include "xdp/nat-fragments.bpf.h"
#include "xdp/nat-route.bpf.h"
#include "xdp/nat-ways.bpf.h"

/* Chunks of SCTP that end an association: RFC 9260 section 3.2. */
#define SCTP_ABORT             6
#define SCTP_SHUTDOWN_COMPLETE 14

/* ---- what both directions need --------------------------------------------------------------- */

/* A packet on the way to another node than its destination: the host knows what to do with it. */
static __always_inline bool nat_is_on_the_way(struct xdp_md *ctx, struct packet *pkt)
{
	bool options = pkt->family == 4 && pkt->l4_offset != pkt->l3_offset + sizeof(struct iphdr);

	return pkt->source_routed || (options && is_on_the_way4(ctx, pkt));
}

static __always_inline __u32 nat_ports_of(const struct packet *pkt)
{
	return BYTES4(bpf_htons(pkt->sport), bpf_htons(pkt->dport));
}

/* INIT has no tag. The first chunk follows the common header. */
static __always_inline __u32 nat_event_of_sctp(struct xdp_md *ctx, const struct packet *pkt)
{
	const __u8 *chunk;

	if (!pkt->sctp_tag)
		return NAT_OPENS;
	chunk = nat_bytes_at(ctx, pkt->l4_offset, sizeof(struct sctp_head) + 1);
	return chunk && (chunk[12] == SCTP_ABORT || chunk[12] == SCTP_SHUTDOWN_COMPLETE)
		       ? NAT_CLOSES
		       : NAT_GOES_ON;
}

static __always_inline __u32 nat_event_of_any(struct xdp_md *ctx, const struct packet *pkt)
{
	if (pkt->quoted)
		return NAT_GOES_ON;
	if (pkt->proto == IPPROTO_UDP)
		return NAT_OF_UDP;
	if (pkt->proto == IPPROTO_SCTP)
		return nat_event_of_sctp(ctx, pkt);
	return (pkt->tcp_flags & 0x12) == 0x02 ? NAT_OPENS
	       : pkt->tcp_flags & 0x05         ? NAT_CLOSES
					       : NAT_GOES_ON;
}

/* The connection of c->place, into the course. */
__noinline int nat_keep(struct packet *pkt, __u64 place)
{
	struct nat_course *c = nat_course_get();

	if (!pkt || !c)
		return 0;
	c->place = place;
	if (!(pkt->family == 4 ? nat_hold(4, place, &c->held) : nat_hold(6, place, &c->held)))
		return 0;
	c->end = c->held.key.last >> NAT_END_SHIFT;
	return 1;
}

/* The packet leaves by c->ifindex: `sent`, or `lost`. */
static __always_inline int nat_leave_by(struct xdp_md *ctx, struct packet *pkt,
					const struct nat_course *c, int sent, int lost)
{
	int verdict = XDP_DROP;
	bool leaves = nat_leaves(ctx, c->ifindex, &verdict);

	pkt->verdict = verdict;
	return leaves ? sent : lost;
}

/* The quoted packet went in the other direction. */
static __always_inline void nat_turn_any(const struct packet *pkt, struct nat_course *c)
{
	if (pkt->family == 4)
		nat_turn(4, &c->names, &c->quoted);
	else
		nat_turn(6, &c->names, &c->quoted);
}

/* The checksum of SCTP covers its ports: they must not change. */
static __always_inline bool nat_moves_sctp(const struct packet *pkt, const struct nat_course *c)
{
	return pkt->proto == IPPROTO_SCTP && !pkt->quoted && pkt->has_l4 &&
	       c->names.ports != nat_ports_of(pkt);
}

/* No hop is left: it changes no connection. */
static __always_inline int nat_expire(struct xdp_md *ctx, struct packet *pkt)
{
	return reply_error(ctx, pkt, REPLY_TTL_EXCEEDED, 0) ? REASON_PASS_TTL : REASON_DROP_TTL;
}

/* ---- to the backend -------------------------------------------------------------------------- */

/* All zero, which is no peer, if there are several tags. */
static __always_inline struct nat_peer nat_peer_of_any(struct xdp_md *ctx, const struct packet *pkt)
{
	struct arrival from = {.number = iface_number(ctx), .vlan = packet_vid(pkt)};

	from.frame = header_at(ctx, 0, ETH_HLEN);
	return from.frame && pkt->tags < 2 ? nat_peer_of(from) : (struct nat_peer){};
}

static __always_inline void nat_ask_of_any(struct xdp_md *ctx, const struct packet *pkt, __u64 end,
					   struct nat_ask *ret)
{
	__u16 port = bpf_htons(pkt->sport);

	ret->peer = nat_peer_of_any(ctx, pkt);
	ret->end = end;
	ret->event = nat_event_of_any(ctx, pkt);
	ret->length = pkt->length;
	ret->room = 0;
	if (pkt->family == 4) {
		nat_names_of(4, pkt->src, pkt->dst, nat_ports_of(pkt), ret);
		ret->key = nat_key_of(4, pkt->src, port, end);
		ret->hash = nat_hash(4, pkt->src, port, pkt->proto);
	} else {
		nat_names_of(6, pkt->src, pkt->dst, nat_ports_of(pkt), ret);
		ret->key = nat_key_of(6, pkt->src, port, end);
		ret->hash = nat_hash(6, pkt->src, port, pkt->proto);
	}
}

static __always_inline __u64 nat_end_of_any(const struct packet *pkt)
{
	__u32 port_proto = nat_port_proto(bpf_htons(pkt->dport), pkt->proto);

	return pkt->family == 4 ? nat_end_of(4, pkt->dst, port_proto)
				: nat_end_of(6, pkt->dst, port_proto);
}

/* An ICMP error neither opens a connection nor changes it. */
static __always_inline __u64 nat_place_of_any(const struct packet *pkt, const struct nat_ask *ask)
{
	if (pkt->quoted)
		return pkt->family == 4 ? nat_find_or_begin4(ask) : nat_find_or_begin6(ask);
	return pkt->family == 4 ? nat_place_of4(ask) : nat_place_of6(ask);
}

/* No connection, and the packet opens none. A reset tells the client so, within its budget, but not
 * in the first time after an attach: the client may soon find its connection elsewhere. */
static __always_inline int nat_refuse(struct xdp_md *ctx, struct packet *pkt)
{
	if (pkt->proto != IPPROTO_TCP || now_jiffies() < nat()->resets_from)
		return REASON_DROP_NAT_UNKNOWN;
	return reply(ctx, pkt) == REASON_PASS_REPLY ? REASON_PASS_NAT_RESET
						    : REASON_DROP_NAT_UNKNOWN;
}

/* Why the packet has no place. */
static __always_inline int nat_without_place(struct xdp_md *ctx, struct packet *pkt, int reason,
					     const struct nat_ask *ask)
{
	if (pkt->quoted)
		return reason == NAT_LEAVE ? NAT_LEAVE : pkt->passed;
	if (reason == NAT_LEAVE && ask->room)
		return reply_error(ctx, pkt, REPLY_TOO_BIG, ask->room) ? REASON_PASS_TOO_BIG
								       : REASON_DROP_TOO_BIG;
	return reason == REASON_DROP_NAT_UNKNOWN ? nat_refuse(ctx, pkt) : reason;
}

/* The connection of a packet with ports, into the course: GO_ON, or a reason; NAT_LEAVE: the packet
 * is not of nat. */
static __always_inline int nat_seek(struct xdp_md *ctx, struct packet *pkt, struct nat_course *c)
{
	__u64 end = nat_end_of_any(pkt), place;
	struct nat_ask *ask = nat_ask_get();

	if (!ask)
		return REASON_DROP_INTERNAL;
	if (!end || nat_use_of(end)->mode == NAT_USE_NONE)
		return NAT_LEAVE;
	if (pkt->ttl <= 1 && !pkt->quoted)
		return nat_expire(ctx, pkt);
	nat_ask_of_any(ctx, pkt, end, ask);
	c->end = end;
	place = nat_place_of_any(pkt, ask);
	if ((__s64)place < 0)
		return nat_without_place(ctx, pkt, place & 0xff, ask);
	if (is_test() && place >= NAT_OF_TEST) {
		c->place = place;
		c->held.word = nat_pack(NAT_OPENING, 0, place, 0);
		return GO_ON;
	}
	return nat_keep(pkt, place) && !nat_keys_differ(&c->held.key, &ask->key, ~0ull)
		       ? GO_ON
		       : REASON_DROP_NAT_BUSY;
}

/* The sender of an ICMP error, which follow_quote() has replaced by the client. */
static __always_inline bool nat_keep_sender(struct xdp_md *ctx, const struct packet *pkt,
					    struct nat_names *ret)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	const struct ipv6hdr *ip6;
	const struct iphdr *ip4;

	if (pkt->family == 4) {
		if (!(ip4 = header_at(ctx, l3, sizeof(*ip4))))
			return false;
		ret->src[0] = ip4->saddr;
		return true;
	}
	if (!(ip6 = header_at(ctx, l3, sizeof(*ip6))))
		return false;
	__builtin_memcpy(ret->src, &ip6->saddr, sizeof(ret->src));
	return true;
}

/* The names of the packet and of its quote. In fullnat an error is from the source, which is all
 * that the backend answers; in nat it keeps its sender. */
static __always_inline bool nat_name_to(struct xdp_md *ctx, const struct packet *pkt,
					const struct backend *to, struct nat_course *c)
{
	bool has_source;

	if (pkt->family == 4) {
		nat_names_to(4, pkt->src, nat_ports_of(pkt), c->place, to, &c->names);
		has_source = nat_has_source(4, c->place);
	} else {
		nat_names_to(6, pkt->src, nat_ports_of(pkt), c->place, to, &c->names);
		has_source = nat_has_source(6, c->place);
	}
	if (!pkt->quoted)
		return !nat_moves_sctp(pkt, c);
	nat_turn_any(pkt, c);
	return has_source || nat_keep_sender(ctx, pkt, &c->names);
}

static __always_inline void nat_way_to(const struct backend *to, struct nat_course *c)
{
	__builtin_memcpy(c->macs, to, 2 * ETH_ALEN);
	c->vlan = *(const volatile __u16 *)&to->vlan;
	c->ifindex = to->ifindex;
}

static __always_inline int nat_go_to(struct xdp_md *ctx, struct packet *pkt,
				     const struct service *s, struct nat_course *c)
{
	__u32 id = nat_backend(c->held.word);
	struct backend *to = backend_at(id);
	int reason;

	if (!to)
		return REASON_DROP_FORWARD;
	if ((reason = forward_check(ctx, pkt, s, to, 0)) != GO_ON)
		return reason;
	if (!nat_name_to(ctx, pkt, to, c))
		return REASON_DROP_FORWARD;
	if (pkt->fragment == FRAGMENT_FIRST)
		nat_fragment_note(ctx, pkt, 0);
	nat_way_to(to, c);
	if (!nat_put_frame(ctx, pkt, c, s->id))
		return REASON_DROP_FORWARD;
	return nat_leave_by(ctx, pkt, c, REASON_PASS_SERVICE, REASON_DROP_NO_NEXT_HOP);
}

/* Does an error that follows the flow of its quote tell its sender anything? */
static __always_inline bool nat_is_followed(const struct packet *pkt)
{
	return !pkt->quoted || nat_is_error(pkt->family, pkt->icmp_type);
}

/* A later fragment without a connection. It is dropped if its service or, without one, the service
 * of its destination is in nat or fullnat. */
static __always_inline int nat_without_first(struct packet *pkt)
{
	const bool has_service = pkt->service != NO_SERVICE;
	__u32 number = has_service ? pkt->service : service_find(pkt, BY_DESTINATION);
	const struct service *s = service_at(number);

	if (!s || !(service_mode_does(s->mode) & MODE_NAT))
		return has_service ? GO_ON : pkt->passed;
	service_count(s, pkt, BACKEND_NONE, REASON_DROP_SERVICE_FRAGMENT);
	return REASON_DROP_SERVICE_FRAGMENT;
}

static __always_inline int nat_forward_later(struct xdp_md *ctx, struct packet *pkt,
					     struct nat_course *c)
{
	const struct service *s;
	int reason;

	if (!nat_fragment_find(ctx, pkt, 0) || nat_use_of(c->end)->mode == NAT_USE_NONE)
		return nat_without_first(pkt);
	nat_test_note(c->end, c->place, c->held.word);
	if (!(s = service_at(nat_use_of(c->end)->service)))
		return REASON_DROP_INTERNAL;
	reason = nat_go_to(ctx, pkt, s, c);
	service_count(s, pkt, nat_backend(c->held.word), reason);
	return reason;
}

/* Sends a packet to the backend of its connection, and counts it by service and backend. A reason;
 * pkt->passed: the packet is left to the host; GO_ON: it is not of nat, and the present mode of its
 * service decides. s: the service of the packet, after vip_icmp() if it is an ICMP error; it does
 * not matter for a later fragment. */
static __always_inline int nat_forward_any(struct xdp_md *ctx, struct packet *pkt,
					   const struct service *s)
{
	struct nat_course *c = nat_course_new();
	int reason;

	if (!c)
		return REASON_DROP_INTERNAL;
	if (pkt->fragment == FRAGMENT_LATER)
		return nat_forward_later(ctx, pkt, c);
	if (!s || !has_ports(pkt) || !nat_is_followed(pkt) || nat_is_on_the_way(ctx, pkt))
		return pkt->passed;
	reason = nat_seek(ctx, pkt, c);
	if (reason == NAT_LEAVE)
		return GO_ON;
	if (reason == GO_ON) {
		nat_test_note(c->end, c->place, c->held.word);
		reason = nat_go_to(ctx, pkt, s, c);
	}
	service_count(s, pkt, nat_backend(c->held.word), reason);
	return reason;
}

/* ---- to the client --------------------------------------------------------------------------- */

/* The place of the connection that a packet with ports answers, or NAT_NOWHERE; the connection in
 * the course. */
static __always_inline __u64 nat_find_back(const int family, const struct packet *pkt)
{
	const __u16 ports[2] = {bpf_htons(pkt->sport), bpf_htons(pkt->dport)};
	struct nat_course *c = nat_course_get();

	return c ? nat_find_of(family, pkt->src, pkt->dst, ports, pkt->proto, &c->held)
		 : NAT_NOWHERE;
}

__noinline __u64 nat_find_back4(struct packet *pkt)
{
	return pkt ? nat_find_back(4, pkt) : NAT_NOWHERE;
}

__noinline __u64 nat_find_back6(struct packet *pkt)
{
	return pkt ? nat_find_back(6, pkt) : NAT_NOWHERE;
}

/* true: the course has the connection. */
static __always_inline bool nat_seek_flow(struct packet *pkt, struct nat_course *c)
{
	c->place = pkt->family == 4 ? nat_find_back4(pkt) : nat_find_back6(pkt);
	c->end = c->held.key.last >> NAT_END_SHIFT;
	return c->place != NAT_NOWHERE;
}

/* An ICMP error about a packet to a backend: it becomes one of the flow that it quotes, or remains
 * as it is. */
static __always_inline bool nat_seek_quoted(struct xdp_md *ctx, struct packet *pkt,
					    struct nat_course *c)
{
	__u32 src[4];
	__u8 proto = pkt->proto;

	if (!nat_is_error(pkt->family, pkt->icmp_type))
		return false;
	__builtin_memcpy(src, pkt->src, sizeof(src));
	if (follow_quote(ctx, pkt) && nat_seek_flow(pkt, c))
		return true;
	__builtin_memcpy(pkt->src, src, sizeof(src));
	pkt->proto = proto;
	pkt->sport = pkt->dport = 0;
	pkt->quoted = 0;
	return false;
}

static __always_inline bool nat_seek_back(struct xdp_md *ctx, struct packet *pkt,
					  struct nat_course *c)
{
	if (pkt->fragment == FRAGMENT_LATER)
		return nat_fragment_find(ctx, pkt, 1);
	if (is_icmp(pkt))
		return nat_seek_quoted(ctx, pkt, c);
	return has_ports(pkt) && pkt->has_l4 && nat_seek_flow(pkt, c);
}

static __always_inline bool nat_name_back(const struct packet *pkt, struct nat_course *c)
{
	if (pkt->family == 4)
		nat_names_back(4, c->held.key, nat_end_at(c->end), &c->names);
	else
		nat_names_back(6, c->held.key, nat_end_at(c->end), &c->names);
	nat_turn_any(pkt, c);
	return !nat_moves_sctp(pkt, c);
}

/* Why the answer is not sent, or GO_ON. */
static __always_inline int nat_check_back(struct xdp_md *ctx, struct packet *pkt,
					  struct nat_course *c)
{
	if (!nat_name_back(pkt, c))
		return REASON_DROP_FORWARD;
	if (pkt->family == 4 ? nat_is_blocked(4, c->names.dst, pkt->length)
			     : nat_is_blocked(6, c->names.dst, pkt->length))
		return REASON_DROP_BLOCK_TO;
	if (!nat_way_back(ctx, pkt, c))
		return REASON_DROP_NAT_NO_PEER;
	if (c->room)
		return reply_error(ctx, pkt, REPLY_TOO_BIG, c->room) ? REASON_PASS_TOO_BIG
								     : REASON_DROP_TOO_BIG;
	return GO_ON;
}

static __always_inline void nat_hear_back(struct xdp_md *ctx, const struct packet *pkt,
					  const struct nat_course *c)
{
	__u32 event = nat_event_of_any(ctx, pkt);

	if (!pkt->quoted && pkt->has_l4)
		nat_answered(c->place, pkt->family, c->held.word, event);
}

static __always_inline int nat_go_back(struct xdp_md *ctx, struct packet *pkt, struct nat_course *c)
{
	int reason;

	if (pkt->ttl <= 1)
		return nat_expire(ctx, pkt);
	nat_hear_back(ctx, pkt, c);
	if ((reason = nat_check_back(ctx, pkt, c)) != GO_ON)
		return reason;
	if (pkt->fragment == FRAGMENT_FIRST)
		nat_fragment_note(ctx, pkt, 1);
	if (!nat_put_frame(ctx, pkt, c, nat_use_of(c->end)->id))
		return REASON_DROP_FORWARD;
	reason = nat_leave_by(ctx, pkt, c, REASON_PASS_ANSWER_NAT, REASON_DROP_NAT_NO_PEER);
	if (reason == REASON_PASS_ANSWER_NAT)
		nat_count_answer(c->end, c->held.word, pkt->length);
	return reason;
}

/* Sends an answer of a backend to its client, and counts it by service and backend. A reason;
 * GO_ON: the packet answers no connection and is as it was. */
static __always_inline int nat_answer_any(struct xdp_md *ctx, struct packet *pkt)
{
	struct nat_course *c = nat_course_new();

	if (!c || !pkt->family || !is_for_one(ctx) || !is_for_us(ctx) ||
	    nat_is_on_the_way(ctx, pkt) || !nat_seek_back(ctx, pkt, c))
		return GO_ON;
	nat_test_note(c->end, c->place, c->held.word);
	return nat_dropped(c->end, nat_go_back(ctx, pkt, c));
}
