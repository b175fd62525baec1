/* SPDX-License-Identifier: GPL-2.0-only */
/* Headers of a packet on its way to a backend, written in pieces of four and eight bytes.
 *
 * Functions on values, and on pointers into the frame whose bytes the caller has checked. They know
 * neither struct packet nor a map but the element of the backend, so that every program which reads
 * packets can use them. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>

#include "common/decap.h"
#include "common/service.h"

/* Source ports of GUE: the dynamic ones, the rest from the flow's hash. */
#define GUE_PORT_FIRST 0xc000
#define GUE_PORT_MASK  0x3fff
/* Bytes of the longest link header that is written. */
#define LINK_BYTES 18

/* The outer headers of a packet; by value. */
struct outer {
	__u64 hash;   /* of the flow */
	__u32 length; /* length of the inner packet, IP */
	__u32 inner;  /* sum of the packet inside, for GUE in IPv6 */
	__u8 proto;   /* of the outer header */
	__u8 tos;     /* type of service or traffic class of the packet inside */
};

/* Neighbours in memory, the first at the lower address. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES4(first, second) ((__u32)(first) | (__u32)(second) << 16)
#define BYTES8(first, second) ((__u64)(first) | (__u64)(second) << 32)
#else
#define BYTES4(first, second) ((__u32)(first) << 16 | (__u32)(second))
#define BYTES8(first, second) ((__u64)(first) << 32 | (__u64)(second))
#endif

static __always_inline void put4(void *at, __u32 bytes)
{
	*(__u32 *)at = bytes;
}

static __always_inline void put8(void *at, __u64 bytes)
{
	*(__u64 *)at = bytes;
}

/* The mode that requires the sum of the packet inside if the outer family is 6: UDP in IPv6 must
 * have a checksum (RFC 8200 section 8.1). */
#define OUTER_SUMMED SERVICE_GUE

static __always_inline bool outer_is_summed(__u32 mode, __u32 family)
{
	return mode == OUTER_SUMMED && family == 6;
}

/* family: of the packet inside. */
static __always_inline __u8 outer_proto(__u32 family, __u32 mode)
{
	return mode == SERVICE_GUE ? IPPROTO_UDP : family == 4 ? IPPROTO_IPIP : IPPROTO_IPV6;
}

/* ---- one hop less ---------------------------------------------------------------------------- */

/* Return the type of service or traffic class. The checksum of IPv4 follows (RFC 1624). */
static __always_inline __u8 hop_less4(struct iphdr *ip)
{
	__u32 check = ip->check + bpf_htons(0x0100);

	ip->check = check + (check >= 0xffff);
	ip->ttl--;
	return ip->tos;
}

static __always_inline __u8 hop_less6(struct ipv6hdr *ip)
{
	ip->hop_limit--;
	return bpf_ntohs(*(const __be16 *)ip) >> 4 & 0xff;
}

/* ---- link ------------------------------------------------------------------------------------ */

static __always_inline __u32 link_bytes(__u32 vlan)
{
	return vlan ? LINK_BYTES : ETH_HLEN;
}

/* LINK_BYTES are there. macs: of the next hop, then of the egress; vlan: 0 for no tag; ethertype:
 * host order. */
static __always_inline void write_macs(void *frame, const void *macs, __u32 vlan, __u16 ethertype)
{
	put8(frame, *(const __u64 *)macs);
	put4(frame + 8, *(const __u32 *)(macs + 8));
	if (!vlan) {
		*(__be16 *)(frame + 12) = bpf_htons(ethertype);
	} else {
		put4(frame + 12, BYTES4(bpf_htons(ETH_P_8021Q), bpf_htons(vlan)));
		*(__be16 *)(frame + 16) = bpf_htons(ethertype);
	}
}

static __always_inline void write_link(void *frame, const struct backend *to, __u32 vlan,
				       __u16 ethertype)
{
	_Static_assert(!offsetof(struct backend, mac) && offsetof(struct backend, mac_own) == 6,
		       "one block of twelve bytes");
	write_macs(frame, to, vlan, ethertype);
}

/* ---- outer addresses ------------------------------------------------------------------------- */

/* Which of the last 32 bits of the source are drawn: network order. */
static __always_inline __u32 source_drawn(const struct backend *to, __u32 bits)
{
	__u32 len = to->source_len;

	if (likely(len >= bits))
		return 0;
	return bits - len >= 32 ? ~0u : bpf_htonl(~0u >> (len & 31));
}

/* The bits themselves, which are zero in the backend's source. */
static __always_inline __u32 source_bits(__u64 hash, const struct backend *to, __u32 bits)
{
	__u32 drawn = source_drawn(to, bits);

	return drawn ? bpf_htonl(hash >> 32) & drawn : 0;
}

static __always_inline __u32 outer_source4(__u64 hash, const struct backend *to)
{
	return to->source[0] | source_bits(hash, to, 32);
}

static __always_inline void outer_source6(__u64 hash, const struct backend *to, __u32 *ret)
{
	__builtin_memcpy(ret, to->source, 16);
	ret[3] |= source_bits(hash, to, 128);
}

/* ---- tunnels --------------------------------------------------------------------------------- */

static __always_inline __u16 gue_port(__u64 hash)
{
	return bpf_htons(GUE_PORT_FIRST | (hash & GUE_PORT_MASK));
}

/* A sum of less than 33 bits, as the checksum that is written. */
static __always_inline __u16 outer_check(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* IPv4 at `at`; more: bytes between it and the packet. The identification has no meaning with DF
 * (RFC 6864). The constant part of the checksum is in the element of the backend. */
static __always_inline void write_outer4(void *at, const struct backend *to, struct outer o,
					 __u32 more)
{
	__u16 total = bpf_htons(sizeof(struct iphdr) + more + o.length);
	__u16 tos = bpf_htons(o.tos), id = bpf_htons(o.hash >> 16);
	__u16 hops = bpf_htons(OUTER_TTL << 8 | o.proto);
	__u32 drawn = source_bits(o.hash, to, 32);
	__u64 sum = (__u64)to->sum + tos + total + id + bpf_htons(o.proto) + drawn;

	put8(at,
	     BYTES8(BYTES4(bpf_htons(OUTER_FIRST) | tos, total), BYTES4(id, bpf_htons(OUTER_DF))));
	put8(at + 8, BYTES8(BYTES4(hops, outer_check(sum)), to->source[0] | drawn));
	put4(at + 16, to->addr[0]);
}

static __always_inline void write_outer6(void *at, const struct backend *to, struct outer o,
					 __u32 more)
{
	const __u64 *source = (const void *)to->source, *dest = (const void *)to->addr;
	__u32 first = bpf_htonl(6u << 28 | (__u32)o.tos << 20 | (o.hash & 0xfffff));
	__u16 hops = bpf_htons(o.proto << 8 | OUTER_TTL);

	put8(at, BYTES8(first, BYTES4(bpf_htons(more + o.length), hops)));
	put8(at + 8, source[0]);
	put8(at + 16, source[1] | BYTES8(0, source_bits(o.hash, to, 128)));
	put8(at + 24, dest[0]);
	put8(at + 32, dest[1]);
}

/* UDP of GUE; check: 0 in IPv4. */
static __always_inline void write_gue(void *at, struct outer o, __u16 check)
{
	__u16 length = bpf_htons(sizeof(struct udphdr) + o.length);

	put8(at, BYTES8(BYTES4(gue_port(o.hash), bpf_htons(DECAP_PORT)), BYTES4(length, check)));
}

/* The checksum of GUE over IPv6. The inner packet has been summed up. */
static __always_inline __u16 gue_check6(const struct backend *to, struct outer o)
{
	__u64 length = bpf_htons(sizeof(struct udphdr) + o.length);
	__u64 sum = (__u64)to->sum + o.inner + 2 * length + gue_port(o.hash) +
		    source_bits(o.hash, to, 128);
	__u16 check = outer_check(sum);

	return check ? check : 0xffff;
}

/* The headers of a tunnel at `at`, outer_bytes() bytes. In the datapath `mode` is a constant. */
static __always_inline void write_tunnel4(void *at, const struct backend *to, struct outer o,
					  const __u32 mode)
{
	write_outer4(at, to, o, outer_bytes(mode, 4) - sizeof(struct iphdr));
	if (mode == SERVICE_GUE)
		write_gue(at + sizeof(struct iphdr), o, 0);
}

static __always_inline void write_tunnel6(void *at, const struct backend *to, struct outer o,
					  const __u32 mode)
{
	write_outer6(at, to, o, outer_bytes(mode, 6) - sizeof(struct ipv6hdr));
	if (mode == SERVICE_GUE)
		write_gue(at + sizeof(struct ipv6hdr), o, gue_check6(to, o));
}
