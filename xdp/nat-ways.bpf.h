/* SPDX-License-Identifier: GPL-2.0-only */
/* Both directions of nat and fullnat, for common packets: to the backend of a connection, and its
 * answers to the client.
 *
 * Everything is decided before the frame is written. NAT_LEAVE: the packet is left to the next
 * program, in the frame that has arrived. */
#pragma once

#include "xdp/balance.bpf.h"
#include "xdp/nat-begin.bpf.h"
#include "xdp/nat-rewrite.bpf.h"
#include "xdp/overlay.bpf.h"
#include "xdp/station.bpf.h"

/* A common packet and where it has arrived. */
struct nat_packet {
	struct vip_place at;
	struct key k; /* without addresses */
	struct arrival from;
};

static __always_inline __u32 nat_event_of(const struct key k)
{
	if (k.base >= BASE_UDP)
		return NAT_OF_UDP;
	return is_syn(k) ? NAT_OPENS : k.base & 0x05 ? NAT_CLOSES : NAT_GOES_ON;
}

static __always_inline __u64 nat_hash(const int family, const __u32 *client, __u16 port, __u8 proto)
{
	return family == 4 ? nat_hash4(&nat()->key, client[0], port, proto)
			   : nat_hash6(&nat()->key, client, port, proto);
}

static __always_inline struct nat_key nat_key_of(const int family, const __u32 *client, __u16 port,
						 __u64 end)
{
	struct nat_key k = {
		.last = (__u64)port << NAT_PORT_SHIFT | end << NAT_END_SHIFT,
	};

	if (family == 4) {
		k.last |= client[0];
	} else {
		k.client[0] = (__u64)client[0] << 32 | client[1];
		k.client[1] = (__u64)client[2] << 32 | client[3];
	}
	return k;
}

static __always_inline bool nat_leaves(struct xdp_md *ctx, __u32 ifindex, int *ret_verdict)
{
	*ret_verdict = XDP_TX;
	if (ifindex == ctx->ingress_ifindex)
		return true;
	*ret_verdict = XDP_REDIRECT;
	return bpf_redirect_map(&egress, ifindex, 0) == XDP_REDIRECT;
}

static __always_inline void nat_copy_address(const int family, __u32 *to, const __u32 *from)
{
	to[0] = from[0];
	if (family == 6) {
		to[1] = from[1];
		to[2] = from[2];
		to[3] = from[3];
	}
}

/* ---- to the backend -------------------------------------------------------------------------- */

static __always_inline void nat_names_of(const int family, const __u32 *src, const __u32 *dst,
					 __u32 ports, struct nat_ask *ret)
{
	nat_copy_address(family, ret->src, src);
	nat_copy_address(family, ret->dst, dst);
	ret->ports = ports;
}

/* A packet and the connection that it is looked for with. */
struct nat_flow {
	struct nat_key key;
	__u64 hash, end;
	__u32 event;
};

static __always_inline struct nat_flow nat_flow_of(const int family, const struct nat_packet p,
						   __u64 end)
{
	const __u32 *src = addresses_of(p.at.ip, family);
	__u16 port = *l4_of(p.at.ip, family);

	return (struct nat_flow){
		.key = nat_key_of(family, src, port, end),
		.hash = nat_hash(family, src, port, proto_of(p.at.ip, family)),
		.end = end,
		.event = nat_event_of(p.k),
	};
}

static __always_inline void nat_ask_of(const int family, const struct nat_packet p,
				       const struct nat_flow f, struct nat_ask *ret)
{
	nat_names_of(family, addresses_of(p.at.ip, family), nat_dst_of(p.at.ip, family),
		     *(const __u32 *)l4_of(p.at.ip, family), ret);
	ret->key = f.key;
	ret->hash = f.hash;
	ret->peer = nat_peer_of(p.from);
	ret->end = f.end;
	ret->event = f.event;
	ret->length = p.k.length;
}

/* The place of the connection and, in *ret_word, its word after the packet; or NAT_NO. */
static __always_inline __u64 nat_find_place(const int family, const struct nat_packet p, __u64 end,
					    __u64 *ret_word)
{
	struct nat_ask *ask = nat_ask_get();
	struct nat_held h = {};
	__u64 place;

	if (!ask)
		return NAT_NO(REASON_DROP_FORWARD);
	/* From here on only in the map: the chain of calls has little stack. */
	nat_ask_of(family, p, nat_flow_of(family, p, end), ask);
	place = family == 4 ? nat_place_of4(ask) : nat_place_of6(ask);
	if ((__s64)place < 0)
		return place;
	if (is_test() && place >= NAT_OF_TEST) {
		*ret_word = nat_pack(NAT_OPENING, 0, place, 0);
		return place;
	}
	if (!nat_hold(family, place, &h) || nat_keys_differ(&h.key, &ask->key, ~0ull))
		return NAT_NO(REASON_DROP_NAT_BUSY);
	*ret_word = h.word;
	return place;
}

static __always_inline bool nat_has_source(const int family, __u64 place)
{
	const __u32 *source = nat_block_of(family, place)->source;

	return family == 4 ? source[0] : source[0] | source[1] | source[2] | source[3];
}

/* The names of a packet on its way to the backend; src, ports: as it has arrived. A block without a
 * source keeps the client's. */
static __always_inline void nat_names_to(const int family, const __u32 *src, __u32 ports,
					 __u64 place, const struct backend *to,
					 struct nat_names *ret)
{
	__u16 sport = ports, dport = ports >> 16;

	nat_copy_address(family, ret->src, src);
	nat_copy_address(family, ret->dst, to->addr);
	if (nat_has_source(family, place)) {
		nat_copy_address(family, ret->src, nat_block_of(family, place)->source);
		sport = bpf_htons(place & (NAT_PLACES - 1));
	}
	if (to->port)
		dport = bpf_htons(to->port);
	ret->ports = sport | (__u32)dport << 16;
}

/* After the translation. The verdict in *ret_verdict if the outcome is REASON_PASS_SERVICE. */
static __always_inline int nat_send_to(struct xdp_md *ctx, const int family,
				       const struct nat_packet p, const struct backend *to,
				       int *ret_verdict)
{
	if (!nat_put_link(ctx, p.at, family, to, *(const volatile __u16 *)&to->vlan))
		return REASON_DROP_FORWARD;
	return nat_leaves(ctx, to->ifindex, ret_verdict) ? REASON_PASS_SERVICE
							 : REASON_DROP_NO_NEXT_HOP;
}

static __always_inline bool nat_is_sendable(const struct xdp_md *ctx, const struct backend *to,
					    __u32 length)
{
	return length <= to->mtu && !(to->no_xmit && to->ifindex != ctx->ingress_ifindex);
}

static __always_inline void nat_count_sent(__u64 end, __u64 word, const struct key k, bool quoted)
{
	const bool opens = is_syn(k);

	if (is_test())
		return;
	count_sent(nat_use_of(end)->id, k.length, opens, quoted);
	count_sent(nat_backend(word), k.length, opens, quoted);
}

/* The reason, after a drop was counted under the service. */
static __always_inline int nat_dropped(__u64 end, int reason)
{
	if (reason != NAT_LEAVE && reason >= REASON_DROP_FIRST && !is_test() &&
	    nat_use_of(end)->mode != NAT_USE_NONE)
		count_dropped(nat_use_of(end)->id, reason);
	return reason;
}

/* A test packet notes its end, place and backend. */
static __always_inline void nat_test_note(__u64 end, __u64 place, __u64 word)
{
	struct policy_test *t = is_test() ? test_get() : NULL;

	if (!t)
		return;
	if (nat_use_of(end)->mode != NAT_USE_NONE)
		t->service = nat_use_of(end)->service;
	t->backend = nat_backend(word);
	t->pinned = place < NAT_OF_TEST;
}

static __always_inline int nat_send_found(struct xdp_md *ctx, const int family,
					  const struct nat_packet p, __u64 place, __u64 end,
					  __u64 word, int *ret_verdict)
{
	const struct backend *to = backend_at(nat_backend(word));
	struct nat_names names;
	int reason;

	if (!to || !nat_is_sendable(ctx, to, p.k.length))
		return to ? NAT_LEAVE : REASON_DROP_FORWARD;
	nat_names_to(family, addresses_of(p.at.ip, family), *(const __u32 *)l4_of(p.at.ip, family),
		     place, to, &names);
	nat_translate(p.at.ip, p.k, family, &names);
	reason = nat_send_to(ctx, family, p, to, ret_verdict);
	if (likely(reason == REASON_PASS_SERVICE))
		nat_count_sent(end, word, p.k, false);
	return reason;
}

/* Is a reset allowed now? In a flood, nearly all packets are dropped here. */
static __always_inline bool nat_may_reset(void)
{
	return now_jiffies() >= nat()->resets_from &&
	       (is_test() || !replies_are_spent(REPLY_REJECT));
}

/* A packet that may get a reset is left. */
static __always_inline int nat_without_place_common(const struct key k, int reason)
{
	bool unknown = reason == REASON_DROP_NAT_UNKNOWN && k.base < BASE_UDP && !(k.base & 0x04);

	return unknown && nat_may_reset() ? NAT_LEAVE : reason;
}

static __always_inline int nat_forward(struct xdp_md *ctx, const int family,
				       const struct nat_packet p, int *ret_verdict)
{
	__u64 end, place, word = 0;

	if (!nat_use_for(p.at.ip, family, &end) || !is_ready(ctx, p.k, family, p.at))
		return NAT_LEAVE;
	place = nat_find_place(family, p, end, &word);
	nat_test_note(end, place, word);
	if ((__s64)place < 0)
		return nat_dropped(end, nat_without_place_common(p.k, place & 0xff));
	return nat_dropped(end, nat_send_found(ctx, family, p, place, end, word, ret_verdict));
}

/* ---- to the client --------------------------------------------------------------------------- */

/* The block that has this source, and 1; or 0. */
static __always_inline __u64 nat_block_at(const int family, const __u32 *source, __u64 mix)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		__u32 cell = nat_source_cell(mix, i);
		__u64 block = nat()->source_at[family == 6][i][BOUND(cell, NAT_SOURCE_CELLS - 1)];

		if (block &&
		    same_address(family, (NAT_ELEMENT(block[family == 6], block) - 1)->source,
				 source))
			return block;
	}
	return 0;
}

/* A packet to a source: its port is the place. NAT_NOWHERE: there is no such connection. */
static __always_inline __u64 nat_answered_place(const int family, const __u32 *dst, __u16 port,
						const struct nat_side *from, struct nat_held *ret)
{
	__u64 mix = nat_mix(family, dst, 0);
	__u64 block = nat_near(mix) & 1 ? nat_block_at(family, dst, mix) : 0, place;

	if (!block)
		return NAT_NOWHERE;
	place = (block - 1) << NAT_PLACES_LOG2 | bpf_ntohs(port);
	return nat_hold(family, place, ret) && nat_is_with(family, ret, from) ? place : NAT_NOWHERE;
}

/* Is it the connection of this client with this backend? k: without an end. */
static __always_inline bool nat_is_of(const int family, __u64 place, const struct nat_key *k,
				      const struct nat_side *from, struct nat_held *ret)
{
	return place != NAT_NOWHERE && nat_hold(family, place, ret) &&
	       !nat_keys_differ(&ret->key, k, NAT_WITHOUT_END) && nat_is_with(family, ret, from);
}

/* A packet of a backend of nat: the client is the destination. */
static __always_inline __u64 nat_place_back(const int family, const __u32 *dst, __u16 port,
					    const struct nat_side *from, struct nat_held *ret)
{
	struct nat_key k = nat_key_of(family, dst, port, 0);
	__u64 hash, place;

	if (!(nat_near(nat_mix(family, from->addr, from->port_proto)) & 1))
		return NAT_NOWHERE;
	hash = nat_hash(family, dst, port, from->port_proto >> 16);
	place = nat_in_own(family, hash, false, &k, NAT_WITHOUT_END, ret);
	if (likely(place != NAT_NOWHERE) && likely(nat_is_with(family, ret, from)))
		return place;
	place = nat_elsewhere(family, hash, false, &k, from);
	return nat_is_of(family, place, &k, from, ret) ? place : NAT_NOWHERE;
}

static __always_inline void nat_names_back(const int family, const struct nat_key k,
					   const struct nat_end *end, struct nat_names *ret)
{
	__builtin_memcpy(ret->src, end->vip, sizeof(ret->src));
	ret->ports = (__u16)end->port_proto | (__u32)(k.last >> NAT_PORT_SHIFT & 0xffff) << 16;
	ret->dst[0] = k.last;
	if (family == 4)
		return;
	ret->dst[0] = k.client[0] >> 32;
	ret->dst[1] = k.client[0];
	ret->dst[2] = k.client[1] >> 32;
	ret->dst[3] = k.client[1];
}

/* The place of the connection of this backend with this client or source, or NAT_NOWHERE. *ret: the
 * connection. */
static __always_inline __u64 nat_find_of(const int family, const __u32 *backend,
					 const __u32 *client, const __u16 ports[2], __u8 proto,
					 struct nat_held *ret)
{
	struct nat_side from = {.port_proto = nat_port_proto(ports[0], proto)};
	__u64 place;

	nat_copy_address(family, from.addr, backend);
	place = nat_answered_place(family, client, ports[1], &from, ret);
	return place != NAT_NOWHERE ? place : nat_place_back(family, client, ports[1], &from, ret);
}

/* Is the frame addressed to this host? A test packet is, as in is_for_us(). */
static __always_inline bool nat_is_ours(const struct arrival from)
{
	__u64 own = knobs.station[from.number & (WEIR_IFACES - 1)], mac = station_of(from.frame);

	if (!is_between_two((const void *)from.frame))
		return false;
	return is_test() || !own || likely(is_own_station(own, mac)) || is_above(from.number, mac);
}

/* Peer 0 and a peer that has ended have none. */
static __always_inline struct nat_device nat_device_of(const struct nat_peer *peer)
{
	return nat()->device[BOUND(peer->number, 2 * WEIR_IFACES - 1)];
}

/* After the translation; ifindex: of the peer. */
static __always_inline int nat_send_back(struct xdp_md *ctx, const int family,
					 const struct nat_packet p, const struct nat_peer *peer,
					 __u32 ifindex, int *ret_verdict)
{
	if (!nat_put_link(ctx, p.at, family, peer->mac, peer->vlan))
		return REASON_DROP_FORWARD;
	return nat_leaves(ctx, ifindex, ret_verdict) ? REASON_PASS_ANSWER_NAT
						     : REASON_DROP_NAT_NO_PEER;
}

static __always_inline void nat_count_back(__u32 id, __u32 bytes)
{
	struct service_counter *c = service_counter(id);

	if (c) {
		c->back_packets++;
		c->back_bytes += bytes;
	}
}

static __always_inline void nat_count_answer(__u64 end, __u64 word, __u32 bytes)
{
	const struct nat_use *use = nat_use_of(end);

	if (is_test())
		return;
	if (use->mode != NAT_USE_NONE)
		nat_count_back(use->id, bytes);
	nat_count_back(nat_backend(word), bytes);
}

/* Is the client blocked as a destination? Answers meet no other entries. */
static __always_inline bool nat_is_blocked(const int family, const __u32 *client, __u32 length)
{
	struct overlay_addr to;

	if (likely(!*(const volatile __u32 *)&knobs.overlay) || (is_test() && !test_is_live()))
		return false;
	if (family == 4)
		return overlay_to4(client[0], length) == REASON_DROP_BLOCK_TO;
	to = addr6(client);
	return overlay_to6(to.high, to.low, length) == REASON_DROP_BLOCK_TO;
}

static __always_inline int nat_send_answer(struct xdp_md *ctx, const int family,
					   const struct nat_packet p, const struct nat_held h,
					   const struct nat_end *at, int *ret_verdict)
{
	const struct nat_peer *peer = nat_peer_at(h.word >> NAT_PEER_SHIFT);
	__u64 end = h.key.last >> NAT_END_SHIFT;
	const struct nat_device by = nat_device_of(peer);
	struct nat_names names;
	int reason;

	/* Too long, or its device is not known: the kernel is asked. */
	if (unlikely(p.k.length > by.mtu))
		return NAT_LEAVE;
	nat_names_back(family, h.key, at, &names);
	if (nat_is_blocked(family, names.dst, p.k.length))
		return REASON_DROP_BLOCK_TO;
	nat_translate(p.at.ip, p.k, family, &names);
	reason = nat_send_back(ctx, family, p, peer, by.ifindex, ret_verdict);
	if (likely(reason == REASON_PASS_ANSWER_NAT))
		nat_count_answer(end, h.word, p.k.length);
	return reason;
}

/* NAT_LEAVE also for a packet that answers no connection. Answers of a service that a policy on
 * trial does not have are sent as before: a client that got them from the backend's address would
 * reset the connection. */
static __always_inline int nat_answer(struct xdp_md *ctx, const int family,
				      const struct nat_packet p, int *ret_verdict)
{
	struct nat_held h = {};
	__u64 place =
		nat_find_of(family, addresses_of(p.at.ip, family), nat_dst_of(p.at.ip, family),
			    l4_of(p.at.ip, family), proto_of(p.at.ip, family), &h);
	__u64 end = h.key.last >> NAT_END_SHIFT;

	if (likely(place == NAT_NOWHERE) || !is_ready(ctx, p.k, family, p.at) ||
	    !nat_is_ours(p.from))
		return NAT_LEAVE;
	nat_test_note(end, place, h.word);
	nat_answered(place, family, h.word, nat_event_of(p.k));
	return nat_dropped(end, nat_send_answer(ctx, family, p, h, nat_end_in(&h), ret_verdict));
}
