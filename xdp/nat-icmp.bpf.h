/* SPDX-License-Identifier: GPL-2.0-only */
/* ICMP errors about packets of nat and fullnat: the quote is translated as the packet was, so that
 * its sender knows it again.
 *
 * An error does not change the connection: every host on the way may send one. */
#pragma once

#include "xdp/nat-ways.bpf.h"

#define NAT_QUOTED 8 /* bytes after the quoted IP header: RFC 792 */

/* The quoted IP header of an error that can be followed, or NULL: also if the sender of the quoted
 * packet is not the receiver of the error. */
static __always_inline __u8 *nat_quote_of(struct xdp_md *ctx, const int family,
					  const struct nat_packet p)
{
	const __u8 *end = (const void *)(long)ctx->data_end, *ip = p.at.ip;
	const __u32 header = header_bytes(family), l4 = header + sizeof(struct icmp_head);
	const __u32 *dst = addresses_of(ip, family) + (family == 4 ? 1 : 4);
	const __u8 *quote = ip + l4;

	if (quote + header + NAT_QUOTED > end || p.k.length < l4 + header + NAT_QUOTED)
		return NULL;
	if (!nat_is_error(family, ip[header]) || ip[family == 4 ? 8 : 7] <= 1)
		return NULL;
	if (end - ip != p.k.length && end - p.at.frame > FRAME_SHORT)
		return NULL;
	if (family == 4 &&
	    (quote[0] != 0x45 || *(const __be16 *)(quote + 6) & bpf_htons(IP4_OFFSET)))
		return NULL;
	if (family == 6 && quote[0] >> 4 != 6)
		return NULL;
	return same_address(family, dst, addresses_of(quote, family)) ? (__u8 *)quote : NULL;
}

/* Writes a 16-bit checksum; returns the growth of the sum of the bytes around it. */
static __always_inline __u64 put_sum(__u16 *check, __u16 new)
{
	__u64 delta = (__u64)(__u16) ~*check + new;

	*check = new;
	return delta;
}

/* The checksum of the quoted transport header, if it is quoted. */
static __always_inline __u64 nat_put_quoted_sum(struct xdp_md *ctx, __u8 proto, __u16 *l4,
						__u64 delta)
{
	__u16 new;

	if (proto == IPPROTO_UDP && l4[3]) {
		new = sum_moved(l4[3], delta);
		return put_sum(&l4[3], new ? new : 0xffff);
	}
	if (proto == IPPROTO_TCP && (void *)(l4 + 9) <= (void *)(long)ctx->data_end)
		return put_sum(&l4[8], sum_moved(l4[8], delta));
	return 0;
}

/* Returns the growth of the sum of the quote. */
static __always_inline __u64 nat_translate_quote(struct xdp_md *ctx, __u8 *quote, const int family,
						 const struct nat_names *n)
{
	__u64 names = put_addresses((__u32 *)addresses_of(quote, family), family, n);
	__u16 *l4 = (__u16 *)l4_of(quote, family);
	__u64 ports = word_moved(*(__u32 *)l4, n->ports);
	struct iphdr *ip4 = (void *)quote;
	__u64 delta = names + ports;

	*(__u32 *)l4 = n->ports;
	if (family == 4)
		delta += put_sum(&ip4->check, sum_moved(ip4->check, names));
	return delta + nat_put_quoted_sum(ctx, proto_of(quote, family), l4, names + ports);
}

/* The whole error: its quote, then its own headers. */
static __always_inline void nat_translate_error(struct xdp_md *ctx, const struct nat_packet p,
						__u8 *quote, const int family,
						const struct nat_names *quoted,
						const struct nat_names *outer)
{
	__u64 delta = nat_translate_quote(ctx, quote, family, quoted);
	__u64 moved = nat_put_header(p.at.ip, family, outer);
	__u16 *icmp = (__u16 *)l4_of(p.at.ip, family);

	/* Only ICMPv6 covers the addresses. */
	icmp[1] = sum_moved(icmp[1], family == 6 ? delta + moved : delta);
}

/* ---- to the client --------------------------------------------------------------------------- */

/* Source and destination exchanged. */
static __always_inline void nat_turn(const int family, const struct nat_names *n,
				     struct nat_names *ret)
{
	const int words = family == 4 ? 1 : 4;

#pragma unroll
	for (int i = 0; i < words; i++) {
		ret->src[i] = n->dst[i];
		ret->dst[i] = n->src[i];
	}
	ret->ports = n->ports >> 16 | n->ports << 16;
}

/* An error about a packet that went to a backend. The client learns the VIP, not who has sent the
 * error: what is inside is not its concern. */
static __always_inline int nat_error_back(struct xdp_md *ctx, const int family,
					  const struct nat_packet p, int *ret_verdict)
{
	__u8 *quote = nat_quote_of(ctx, family, p);
	struct nat_names outer, quoted;
	struct nat_held h = {};
	const __u16 *l4;
	__u16 ports[2];
	const struct nat_peer *peer;
	struct nat_device by;
	int reason;

	if (!quote)
		return NAT_LEAVE;
	l4 = l4_of(quote, family);
	ports[0] = l4[1];
	ports[1] = l4[0];
	if (nat_find_of(family, nat_dst_of(quote, family), addresses_of(quote, family), ports,
			proto_of(quote, family), &h) == NAT_NOWHERE ||
	    !nat_is_ours(p.from))
		return NAT_LEAVE;
	nat_names_back(family, h.key, nat_end_at(h.key.last >> NAT_END_SHIFT), &outer);
	nat_turn(family, &outer, &quoted);
	peer = nat_peer_at(nat_peer(h.word));
	by = nat_device_of(peer);
	if (p.k.length > by.mtu)
		return NAT_LEAVE;
	if (nat_is_blocked(family, outer.dst, p.k.length))
		return REASON_DROP_BLOCK_TO;
	nat_translate_error(ctx, p, quote, family, &quoted, &outer);
	reason = nat_send_back(ctx, family, p, peer, by.ifindex, ret_verdict);
	if (reason == REASON_PASS_ANSWER_NAT)
		nat_count_answer(h.key.last >> NAT_END_SHIFT, h.word, p.k.length);
	return nat_dropped(h.key.last >> NAT_END_SHIFT, reason);
}

/* ---- to the backend -------------------------------------------------------------------------- */

/* The place of the connection whose answer is quoted, or negative. */
static __always_inline __u64 nat_quoted_place(const int family, const __u8 *quote,
					      struct nat_ask *a)
{
	const __u32 *vip = addresses_of(quote, family), *client = nat_dst_of(quote, family);
	const __u16 *ports = l4_of(quote, family);
	__u8 proto = proto_of(quote, family);
	__u64 end = nat_end_of(family, vip, nat_port_proto(ports[0], proto));

	if (!end)
		return NAT_NOWHERE;
	nat_names_of(family, client, vip, ports[1] | (__u32)ports[0] << 16, a);
	a->key = nat_key_of(family, client, ports[1], end);
	a->hash = nat_hash(family, client, ports[1], proto);
	a->end = end;
	a->event = NAT_GOES_ON; /* opens nothing */
	return family == 4 ? nat_find_or_begin4(a) : nat_find_or_begin6(a);
}

/* An error about an answer. In nat its sender remains; in fullnat the backend answers only the
 * source. */
static __always_inline int nat_error_to(struct xdp_md *ctx, const int family,
					const struct nat_packet p, int *ret_verdict)
{
	__u8 *quote = nat_quote_of(ctx, family, p);
	struct nat_ask *ask = nat_ask_get();
	struct nat_names outer, quoted;
	const struct backend *to;
	struct nat_held h = {};
	__u64 place;
	int reason;

	if (!quote || !ask)
		return NAT_LEAVE;
	place = nat_quoted_place(family, quote, ask);
	if ((__s64)place < 0 || !nat_hold(family, place, &h) ||
	    nat_keys_differ(&h.key, &ask->key, ~0ull))
		return NAT_LEAVE;
	to = backend_at(nat_backend(h.word));
	if (!to || !nat_is_sendable(ctx, to, p.k.length))
		return NAT_LEAVE;
	nat_names_to(family, ask->src, ask->ports, place, to, &outer);
	nat_turn(family, &outer, &quoted);
	if (!nat_has_source(family, place))
		nat_copy_address(family, outer.src, addresses_of(p.at.ip, family));
	nat_translate_error(ctx, p, quote, family, &quoted, &outer);
	reason = nat_send_to(ctx, family, p, to, ret_verdict);
	if (reason == REASON_PASS_SERVICE)
		nat_count_sent(ask->end, h.word, p.k, true);
	return nat_dropped(ask->end, reason);
}
