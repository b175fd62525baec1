/* SPDX-License-Identifier: GPL-2.0-only */
/* The short way of a packet of a service: to its backend, on the values that have been read.
 *
 * Asked of the general program are ICMP, services that are not in lines, frames to other stations, sources that no
 * packet from outside has, partial checksums, frames with bytes after their packet, and packets that expire or are
 * too long: all of that is known before a pin is written, and before the frame is. */
#pragma once

#include "xdp/balance.bpf.h"
#include "xdp/short-key.bpf.h"

/* What is known of a packet and its service before anything is written. */
struct trip {
	const struct service *s;
	struct backend *to;
	struct pin_choice choice;
	__u64 hash;    /* of the flow, as its service hashes */
	__u64 tuple;   /* of the flow's tuple, for its pin */
	__u32 service; /* its number */
	__u32 pseudo;  /* sum of the pseudo-header */
};

static __always_inline __u8 proto_of(const struct key k)
{
	return k.base == BASE_UDP ? IPPROTO_UDP : IPPROTO_TCP;
}

static __always_inline bool is_syn(const struct key k)
{
	return k.base < BASE_UDP && (k.base & 0x12) == 0x02;
}

static __always_inline struct heard heard_common(const struct key k)
{
	return (struct heard){
		.event = k.base >= BASE_UDP ? FLOW_GOES_ON
			 : is_syn(k)        ? FLOW_OPENS
			 : k.base & 0x05    ? FLOW_CLOSES
					    : FLOW_GOES_ON,
		.udp = k.base == BASE_UDP,
	};
}

/* ---- whose ---------------------------------------------------------------------------------------- */

/* Its number and 1; 0: it is in no line. */
static __always_inline __u32 vip_of(const struct key k, const int family)
{
	const __u64 addr[2] = {bpf_cpu_to_be64(k.dst_hi), bpf_cpu_to_be64(k.dst_lo)};
	__u32 key = vip_key(k.dport, proto_of(k));

	return family == 4 ? vip_service4(NULL, bpf_htonl(k.dst_hi), key)
			   : vip_service6(NULL, addr, key);
}

/* Of the frame: is it to this station alone? */
static __always_inline bool is_ours(const struct ethhdr *eth, __u32 number)
{
	__u64 own = knobs.station[number & (WEIR_IFACES - 1)];
	__u64 mac = *(const __u32 *)eth->h_dest | (__u64) * (const __u16 *)(eth->h_dest + 4) << 32;

	if ((eth->h_dest[0] | eth->h_source[0]) & 1)
		return false;
	return is_test() || !own || own == (mac | STATION_KNOWN);
}

/* May the address belong to a service? */
static __always_inline bool is_member(const int family, __u64 hi, __u64 lo)
{
	__u32 number = family == 4 ? table4_row(NULL, SIDE_MEMBER, hi)
				   : table6_row(NULL, SIDE_MEMBER, hi, lo);
	const __u64 *row = matrix_row(NULL, MATRIX_MEMBERS, number);

	/* One word of services, or the summary of several. */
	return !row || *row;
}

/* As is_martian(). */
static __always_inline bool is_martian_common(const struct key k, const int family)
{
	bool answerable = family == 4 ? k.src_hi && k.src_hi >> 28 < 14 && k.src_hi >> 24 != 127
				      : k.src_hi >> 56 != 0xff && (k.src_hi | (k.src_lo & ~1ull));

	if (!answerable || (k.src_hi == k.dst_hi && (family == 4 || k.src_lo == k.dst_lo)))
		return true;
	if (k.base < BASE_UDP && k.base & 0x10)
		return false;
	return is_member(family, k.src_hi, k.src_lo);
}

/* ---- the frame ------------------------------------------------------------------------------------ */

static __always_inline __u32 header_bytes(const int family)
{
	return family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

static __always_inline __u64 addresses_sum(const struct key k, const int family)
{
	__u64 sum;

	if (family == 4)
		return (__u64)bpf_htonl(k.src_hi) + bpf_htonl(k.dst_hi);
	sum = (__u64)bpf_htonl(k.src_hi) + bpf_htonl(k.src_hi >> 32) + bpf_htonl(k.src_lo) +
	      bpf_htonl(k.src_lo >> 32);
	return sum + bpf_htonl(k.dst_hi) + bpf_htonl(k.dst_hi >> 32) + bpf_htonl(k.dst_lo) +
	       bpf_htonl(k.dst_lo >> 32);
}

/* May the frame go as it is? The checksum is whole if it is not that of the pseudo-header, which a local sender
 * leaves to its device. UDP that ends before IP does is not common. */
static __always_inline bool is_ready(struct xdp_md *ctx, const struct key k, const int family,
				     __u32 *ret_pseudo)
{
	__u32 l4 = k.l3 + header_bytes(family), payload = k.length - header_bytes(family);
	__u32 first = ctx->data_end - ctx->data;
	const __u8 *ip = header_at(ctx, k.l3, header_bytes(family) + sizeof(struct udphdr));
	__u32 ttl, check;

	if (!ip || (first != k.l3 + k.length && first > FRAME_SHORT))
		return false;
	ttl = family == 4 ? ip[8] : ip[7];
	*ret_pseudo = pseudo_of(addresses_sum(k, family), payload, proto_of(k));
	if (k.base == BASE_UDP) {
		const __u16 *udp = header_at(ctx, l4, sizeof(struct udphdr));

		if (!udp || udp[2] != bpf_htons(payload))
			return false;
		check = udp[3];
	} else {
		const __u16 *tcp = header_at(ctx, l4, sizeof(struct tcphdr));

		if (!tcp)
			return false;
		check = tcp[8];
	}
	return ttl > 1 && check != *ret_pseudo && (check || k.base != BASE_UDP);
}

/* ---- where to ------------------------------------------------------------------------------------- */

static __always_inline __u64 tuple_of(const struct service *s, const struct key k, const int family)
{
	__u32 ports = k.sport | k.dport << 16;
	__u32 src[4] = {bpf_htonl(k.src_hi >> 32), bpf_htonl(k.src_hi), bpf_htonl(k.src_lo >> 32),
			bpf_htonl(k.src_lo)};
	__u32 dst[4] = {bpf_htonl(k.dst_hi >> 32), bpf_htonl(k.dst_hi), bpf_htonl(k.dst_lo >> 32),
			bpf_htonl(k.dst_lo)};

	return family == 4 ? flow_tuple4(&s->key, src[1], dst[1], ports, proto_of(k))
			   : flow_tuple6(&s->key, src, dst, ports, proto_of(k));
}

static __always_inline __u64 source_of(const struct service *s, const struct key k,
				       const int family)
{
	__u32 src[4] = {bpf_htonl(k.src_hi >> 32), bpf_htonl(k.src_hi), bpf_htonl(k.src_lo >> 32),
			bpf_htonl(k.src_lo)};

	return family == 4 ? flow_source4(&s->key, src[1]) : flow_source6(&s->key, src);
}

/* false: there is no such slot. */
static __always_inline bool choose_common(const struct key k, const int family, struct trip *t)
{
	const struct service *s = t->s;
	bool source = s->hash == SERVICE_HASH_SOURCE;
	const __u64 *slot;
	__u64 word;
	__u32 index;

	t->hash = source ? source_of(s, k, family) : tuple_of(s, k, family);
	index = slot_of(t->hash, s->size);
	if (!(slot = slot_at(s->first_slot + index)))
		return false;
	word = *(const volatile __u64 *)slot;
	test_slot(index, word);
	if (likely(!slot_former(word)) || (s->udp_move && k.base == BASE_UDP)) {
		t->choice = (struct pin_choice){.backend = slot_owner(word), .event = NO_EVENT};
		return true;
	}
	t->tuple = source ? tuple_of(s, k, family) : t->hash;
	t->choice = choose_unstable(s, t->service, word, t->tuple, heard_common(k));
	return t->choice.backend != BACKEND_NONE;
}

/* Is there a next hop for a packet of this length? What is not common is left to the general program. */
static __always_inline bool can_go(const struct xdp_md *ctx, const struct key k,
				   const struct trip *t)
{
	const struct backend *to = t->to;

	if (to->here || !to->ifindex || (to->no_xmit && to->ifindex != ctx->ingress_ifindex))
		return false;
	return !is_too_long(to, k.length + outer_bytes(t->s->mode, to->family));
}

/* ---- forward -------------------------------------------------------------------------------------- */

/* The sum of the packet inside, for GUE in IPv6: what TCP or UDP sum up to with their pseudo-header is all ones, and
 * so is a header of IPv4. */
static __always_inline __u32 inner_sum_common(const __u16 *ip, const struct key k, const int family,
					      __u32 pseudo)
{
	__u64 sum = 0xffff & ~pseudo;

	if (family == 6)
		sum += (__u64)ip[0] + ip[1] + ip[2] + ip[3] + addresses_sum(k, 6);
	return sum_fold(sum);
}

/* Writes the frame that leaves. false: the kernel gave no room, or the headers are out of reach. */
static __always_inline bool forward_common(struct xdp_md *ctx, const struct key k, const int family,
					   const struct trip *t)
{
	const struct backend *to = t->to;
	__u32 mode = t->s->mode, outside = mode == SERVICE_DR ? family : to->family;
	__u32 vlan = *(const volatile __u16 *)&to->vlan;
	struct outer o = {
		.hash = t->hash,
		.length = k.length,
		.proto = outer_proto(family, mode),
	};
	void *ip = header_at(ctx, k.l3, header_bytes(family));
	int move = (int)k.l3 - (int)(link_bytes(vlan) + outer_bytes(mode, to->family));

	if (!ip)
		return false;
	if (has_mode(SERVICE_GUE) && mode == SERVICE_GUE && to->family == 6) {
		o.tos = family == 4 ? hop_less4(ip) : hop_less6(ip);
		o.inner = inner_sum_common(ip, k, family, t->pseudo);
	} else {
		o.tos = family == 4 ? hop_less4(ip) : hop_less6(ip);
	}
	if (move && bpf_xdp_adjust_head(ctx, move))
		return false;
	return put_headers(ctx, to, mode, o, vlan, outside == 4 ? ETH_P_IP : ETH_P_IPV6);
}

/* ---- all ------------------------------------------------------------------------------------------ */

static __always_inline void test_trip(const struct trip *t, int passed)
{
	struct policy_test *test = is_test() ? test_get() : NULL;

	if (test) {
		test->service = t->service;
		test->backend = t->choice.backend;
		test->passed = passed;
	}
}

static __always_inline int sent_by(struct xdp_md *ctx, const struct backend *to, __s32 *ret_verdict)
{
	*ret_verdict = XDP_TX;
	if (to->ifindex == ctx->ingress_ifindex)
		return REASON_PASS_SERVICE;
	*ret_verdict = XDP_REDIRECT;
	return bpf_redirect_map(&egress, to->ifindex, 0) == XDP_REDIRECT ? REASON_PASS_SERVICE
									 : REASON_DROP_NO_NEXT_HOP;
}

/* Nothing can be asked from here on. */
static __always_inline struct fate send_common(struct xdp_md *ctx, const struct key k,
					       const int family, struct trip *t, struct fate f)
{
	test_trip(t, f.reason);
	choice_write(t->s, t->service, t->tuple, t->choice, false);
	f.reason = forward_common(ctx, k, family, t) ? sent_by(ctx, t->to, &f.verdict)
						     : REASON_DROP_FORWARD;
	if (is_test())
		return f;
	if (f.reason == REASON_PASS_SERVICE) {
		count_sent(t->s->id, k.length, is_syn(k), false);
		count_sent(t->choice.backend, k.length, is_syn(k), false);
	} else {
		count_dropped(t->s->id, f.reason);
	}
	return f;
}

/* What becomes of a packet that passed for f.reason. number: of the interface. */
static __always_inline struct fate balance_common(struct xdp_md *ctx, const struct key k,
						  const int family, __u32 number, struct fate f)
{
	const struct ethhdr *eth = header_at(ctx, 0, sizeof(*eth));
	struct trip t = {};
	__u32 service;

	if (k.base == BASE_ICMP || !eth)
		return ASK;
	if (!(service = vip_of(k, family)))
		return TABLE_NUMBER(NULL, VIP_CONSTANT(VIPS_ALL)) ? f : ASK;
	t.service = service - 1;
	if (!(t.s = service_at(t.service)) || !is_ours(eth, number) ||
	    is_martian_common(k, family) || !is_ready(ctx, k, family, &t.pseudo) ||
	    !choose_common(k, family, &t))
		return ASK;
	if (!(t.to = backend_at(t.choice.backend)) || !can_go(ctx, k, &t))
		return ASK;
	return send_common(ctx, k, family, &t, f);
}
