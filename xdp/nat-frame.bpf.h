/* SPDX-License-Identifier: GPL-2.0-only */
/* The translation of any packet in its frame: with options, extension headers, several tags, as a
 * fragment, and as an ICMP error with its quote. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/forward.bpf.h"
#include "xdp/nat-icmp.bpf.h"
#include "xdp/pathmtu.bpf.h"

/* All that is decided before the frame is written. In a map, because the chain of calls needs the
 * stack. */
struct nat_course {
	struct nat_held held;    /* the connection */
	struct nat_names names;  /* for the packet */
	struct nat_names quoted; /* for the packet that it quotes */
	__u64 place;
	__u32 end;     /* number of its end */
	__u32 ifindex; /* of the egress */
	__u32 vlan;
	__u32 room;    /* MTU of the way to the client, if the packet is longer; else 0 */
	__u8 macs[16]; /* as of write_macs() */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nat_course);
} nat_courses SEC(".maps");

static __always_inline struct nat_course *nat_course_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&nat_courses, &zero);
}

/* For the next packet: a connection of IPv4 leaves parts of its key as they are. */
static __always_inline struct nat_course *nat_course_new(void)
{
	struct nat_course *c = nat_course_get();

	if (c)
		c->held = (struct nat_held){};
	return c;
}

/* `size` bytes of the frame at `offset`, or NULL. */
static __always_inline void *nat_bytes_at(const struct xdp_md *ctx, __u32 offset, __u32 size)
{
	/* As in quoted_at(). */
	asm volatile("" : "+r"(offset));
	return offset > L4_OFFSET_MAX ? NULL : header_at(ctx, offset, size);
}

/* ---- checksums ------------------------------------------------------------------------------- */

static __always_inline bool nat_sums_up(struct xdp_md *ctx, const struct packet *pkt)
{
	int sum = sum_packet(ctx, pkt->l4_offset, pkt->end - pkt->l4_offset);

	return sum >= 0 && sum_fold((__u32)sum + sum_pseudo(pkt)) == 0xffff;
}

/* Completes a partial checksum if nothing after us will. 1: it remains partial, because the kernel
 * completes it in generic mode. id: of the counters. */
__noinline int nat_remains_partial(struct xdp_md *ctx, struct packet *pkt, __u32 id)
{
	if (!pkt || likely(!checksum_is_partial(ctx, pkt)))
		return 0;
	if (is_generic(ctx))
		return !nat_sums_up(ctx, pkt);
	if (checksum_complete(ctx, pkt))
		service_tally(id, SERVICE_COMPLETED);
	return 0;
}

/* A partial checksum is the sum of the pseudo-header, which has no ports. */
static __always_inline void nat_move_sum(__u16 *check, bool udp, bool partial, __u64 addresses,
					 __u64 ports)
{
	if (partial)
		*check = sum_fold((__u64)*check + addresses);
	else if (udp)
		move_udp(check, addresses + ports);
	else
		*check = sum_moved(*check, addresses + ports);
}

/* Ports and checksum; `addresses`: the growth of their sum. The checksum of SCTP covers the ports
 * only, which do not change. */
static __always_inline bool nat_put_transport(struct xdp_md *ctx, const struct packet *pkt,
					      __u32 new, __u64 addresses, bool partial)
{
	const bool tcp = pkt->proto == IPPROTO_TCP;
	__u64 ports;
	__u16 *l4;

	if (!pkt->has_l4 || pkt->proto == IPPROTO_SCTP)
		return true;
	l4 = nat_bytes_at(ctx, pkt->l4_offset, sizeof(struct udphdr));
	if (!l4)
		return false;
	ports = word_moved(*(__u32 *)l4, new);
	*(__u32 *)l4 = new;
	if (!tcp) {
		nat_move_sum(&l4[3], true, partial, addresses, ports);
		return true;
	}
	l4 = nat_bytes_at(ctx, pkt->l4_offset, sizeof(struct tcphdr));
	if (l4)
		nat_move_sum(&l4[8], false, partial, addresses, ports);
	return l4;
}

/* ---- headers --------------------------------------------------------------------------------- */

/* The growth of the sum of the addresses; -1: the header is out of reach. */
static __always_inline __s64 nat_put_ip(struct xdp_md *ctx, const struct packet *pkt,
					const struct nat_names *n)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	void *ip;

	if (pkt->family == 4)
		return (ip = header_at(ctx, l3, sizeof(struct iphdr))) ? nat_put_header(ip, 4, n)
								       : -1;
	return (ip = header_at(ctx, l3, sizeof(struct ipv6hdr))) ? nat_put_header(ip, 6, n) : -1;
}

static __always_inline bool nat_put_frame_link(struct xdp_md *ctx, const struct packet *pkt,
					       const struct nat_course *c)
{
	int move = (int)pkt->l3_offset - (int)link_bytes(c->vlan);
	void *frame;

	if (move && bpf_xdp_adjust_head(ctx, move))
		return false;
	if (!(frame = header_at(ctx, 0, LINK_BYTES)))
		return false;
	write_macs(frame, c->macs, c->vlan, pkt->family == 4 ? ETH_P_IP : ETH_P_IPV6);
	return true;
}

/* ---- quotes ---------------------------------------------------------------------------------- */

/* The length of the quoted IP header at `offset`; follow_quote() has tested it. */
static __always_inline __u32 nat_quoted_header(struct xdp_md *ctx, const struct packet *pkt,
					       __u32 offset)
{
	const __u8 *first;

	if (pkt->family == 6)
		return sizeof(struct ipv6hdr);
	first = nat_bytes_at(ctx, offset, 1);
	return first ? (*first & 15) * 4 : 0;
}

/* The addresses of the quote and its header's checksum. Returns the growth of its sum; *ret: how
 * much its addresses contribute; -1: it is out of reach. */
static __always_inline __s64 nat_put_quoted_ip(struct xdp_md *ctx, const struct packet *pkt,
					       __u32 offset, const struct nat_names *n, __u64 *ret)
{
	struct ipv6hdr *ip6;
	struct iphdr *ip4;

	if (pkt->family == 6) {
		if (!(ip6 = nat_bytes_at(ctx, offset, sizeof(*ip6))))
			return -1;
		*ret = put_addresses((__u32 *)addresses_of((void *)ip6, 6), 6, n);
		return *ret;
	}
	if (!(ip4 = nat_bytes_at(ctx, offset, sizeof(*ip4))))
		return -1;
	*ret = put_addresses((__u32 *)addresses_of((void *)ip4, 4), 4, n);
	return *ret + put_sum(&ip4->check, sum_moved(ip4->check, *ret));
}

/* The checksum at `offset`, if it is quoted. Returns its growth. */
static __always_inline __u64 nat_put_sum_at(struct xdp_md *ctx, const struct packet *pkt,
					    __u32 offset, __u64 delta)
{
	const bool udp = pkt->proto == IPPROTO_UDP;
	__u16 *check = (__u16 *)quoted_at(ctx, pkt, offset, sizeof(*check)), new;

	if (!check || (udp && !*check))
		return 0;
	new = sum_moved(*check, delta);
	return put_sum(check, !new &&udp ? 0xffff : new);
}

/* The quoted packet. Returns the growth of its sum; -1: it is out of reach. */
__noinline __s64 nat_put_quote(struct xdp_md *ctx, struct packet *pkt)
{
	struct nat_course *c = nat_course_get();
	__u32 offset, header, *ports;
	__u64 addresses = 0, moved;
	__s64 delta;

	if (!pkt || !c)
		return -1;
	offset = pkt->l4_offset + sizeof(struct icmp_head);
	header = nat_quoted_header(ctx, pkt, offset);
	if ((delta = nat_put_quoted_ip(ctx, pkt, offset, &c->quoted, &addresses)) < 0)
		return -1;
	if (pkt->proto == IPPROTO_SCTP)
		return delta;
	offset += header;
	if (!(ports = nat_bytes_at(ctx, offset, sizeof(*ports))))
		return -1;
	moved = word_moved(*ports, c->quoted.ports);
	*ports = c->quoted.ports;
	return delta + moved +
	       nat_put_sum_at(ctx, pkt, offset + (pkt->proto == IPPROTO_TCP ? 16 : 6),
			      addresses + moved);
}

/* The checksum of the error, after its quote and its addresses have grown. */
static __always_inline bool nat_put_icmp_sum(struct xdp_md *ctx, const struct packet *pkt,
					     __u64 quote, __u64 addresses)
{
	struct icmp_head *icmp = nat_bytes_at(ctx, pkt->l4_offset, sizeof(*icmp));

	if (icmp)
		icmp->checksum =
			sum_moved(icmp->checksum, pkt->family == 6 ? quote + addresses : quote);
	return icmp;
}

/* ---- the whole frame ------------------------------------------------------------------------- */

/* Headers of IP and transport; 0: one is out of reach, and the frame may be changed. */
__noinline int nat_put_names(struct xdp_md *ctx, struct packet *pkt, __u32 partial)
{
	struct nat_course *c = nat_course_get();
	__s64 addresses, quote = 0;

	if (!pkt || !c)
		return 0;
	if (pkt->quoted && (quote = nat_put_quote(ctx, pkt)) < 0)
		return 0;
	if ((addresses = nat_put_ip(ctx, pkt, &c->names)) < 0)
		return 0;
	return pkt->quoted ? nat_put_icmp_sum(ctx, pkt, quote, addresses)
			   : nat_put_transport(ctx, pkt, c->names.ports, addresses, partial);
}

/* The frame as the course has it, without bytes after the packet unless it is short. false: no
 * room; it may be changed. */
static __always_inline bool nat_put_frame(struct xdp_md *ctx, struct packet *pkt,
					  const struct nat_course *c, __u32 id)
{
	return trim_tail(ctx, pkt, pkt->length) &&
	       nat_put_names(ctx, pkt, nat_remains_partial(ctx, pkt, id)) &&
	       nat_put_frame_link(ctx, pkt, c);
}
