/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a packet: whether it is common, and its fields where the stages of the short way need them.
 *
 * The family is a constant in every function: no register is used for the other family. */
#pragma once

#include "xdp/parse.bpf.h"
#include "xdp/short-key.bpf.h"
#include "xdp/tables.bpf.h"

/* The interface of arrival, and the position of the packet in the frame. */
struct arrival {
	__u32 number;  /* number of the interface in the instance */
	__u32 class;   /* its number in the policy, and 1; 0: not named */
	__u32 vlan;    /* number; 0: no tag */
	bool balances; /* a constant: the policy has services */
	bool nats;     /* a constant: some are or were in nat or fullnat */
	const __u8 *frame;
};

/* A common packet: its position, and the values read first. The stages read the rest where they
 * need it: a load costs less than space on the stack. */
struct view {
	const __u8 *ip; /* the IP header; the 8 bytes after it are readable too */
	__u32 base;     /* enum matrix_base, TCP's with the flags */
};

#define NOT_COMMON (-1)

static __always_inline __u32 read16(const __u8 *at)
{
	return bpf_ntohs(*(const volatile __be16 *)at);
}

static __always_inline __u32 read32(const __u8 *at)
{
	return bpf_ntohl(*(const volatile __be32 *)at);
}

/* Only for processors that can read unaligned words; BPF assumes this for shorter reads. */
static __always_inline __u64 read64(const __u8 *at)
{
	return bpf_be64_to_cpu(*(const volatile __be64 *)at);
}

/* All ones if a tag follows, else 0. Without a branch: the verifier would follow the whole balancer
 * for either side. */
static __always_inline __u64 is_tagged(__be16 ethertype)
{
	return if_zero32(ethertype ^ bpf_htons(ETH_P_8021Q)) |
	       if_zero32(ethertype ^ bpf_htons(ETHERTYPE_QINQ));
}

/* Reads the tag at `ip` if `tagged` is all ones. Returns where the IP header begins. */
static __always_inline const __u8 *read_tag(const __u8 *ip, __u64 tagged, struct arrival *p)
{
	p->vlan = read16(ip) & tagged;
	return ip + BOUND(tagged, sizeof(struct vlan_tag));
}

/* Steps over the link header, with at most one tag. Returns where the IP header begins if IPv4 with
 * 8 bytes after its header, at least, is readable there; else NULL. */
static __always_inline const __u8 *read_link(const struct xdp_md *ctx, struct arrival *p)
{
	const __u8 *ip = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const __u32 least = sizeof(struct iphdr) + sizeof(struct udphdr);

	p->frame = ip;
	ip += ETH_HLEN;
	asm volatile("" : "+r"(ip));
	if (ip + least > end)
		return NULL;
	ip = read_tag(ip, is_tagged(*(const __be16 *)(ip - 2)), p);
	return ip + least > end ? NULL : ip;
}

static __always_inline int header_of(const int family)
{
	return family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

static __always_inline __u32 read_length(const __u8 *ip, const int family)
{
	return family == 4 ? read16(ip + 2) : header_of(6) + read16(ip + 4);
}

/* The `size` bytes from `l4` on are in the buffer, at least 8. Returns the
 * index in M_BASE, or NOT_COMMON, also for malformed packets, whose reason the general program
 * finds. */
static __always_inline int read_tcp(const __u8 *l4, const __u8 *end, __s32 size)
{
	__s32 header;

	if (l4 + sizeof(struct tcphdr) > end)
		return NOT_COMMON;
	header = l4[12] >> 2 & 0x3c;
	if (header < (__s32)sizeof(struct tcphdr) || header > size)
		return NOT_COMMON;
	return BASE_TCP + l4[13];
}

/* 0, unknown to the verifier: a byte in the frame that is `value`, less `value`. Adding it makes
 * different constants equal for the verifier, which then follows the rest of the program once. */
static __always_inline __u32 unknown_zero(const __u8 *at, const __u8 value)
{
	return *(const volatile __u8 *)at - value;
}

/* at: the protocol, which is `proto`. The balancer must know it, because fewer bytes of UDP are
 * readable. */
static __always_inline int base_of(const __u8 *at, const __u8 proto, const int base, bool balances)
{
	__u64 unknown = base + unknown_zero(at, proto);

	return balances ? base : (int)BOUND(unknown, MATRIX_BASES - 1);
}

static __always_inline bool is_udp(const __u8 *l4, __s32 size)
{
	__s32 length = read16(l4 + 4);

	return length >= (__s32)sizeof(struct udphdr) && length <= size;
}

/* Neighbour discovery is recognised by more than its type. */
static __always_inline bool is_icmp_common(const __u8 *l4, const int family, __s32 size)
{
	return size >= (__s32)sizeof(struct icmp_head) &&
	       !(family == 6 && l4[0] >= 133 && l4[0] <= 136);
}

static __always_inline int read_l4(const __u8 *ip, const __u8 *end, const int family, __s32 size,
				   bool balances)
{
	const int icmp = family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	const __u8 *l4 = ip + header_of(family), *at = ip + (family == 4 ? 9 : 6);
	__u8 proto = *at;

	if (likely(proto == IPPROTO_TCP))
		return read_tcp(l4, end, size);
	if (proto == IPPROTO_UDP)
		return is_udp(l4, size) ? base_of(at, IPPROTO_UDP, BASE_UDP, balances) : NOT_COMMON;
	return proto == icmp && is_icmp_common(l4, family, size)
		       ? base_of(at, icmp, BASE_ICMP, balances)
		       : NOT_COMMON;
}

/* The whole packet is in the buffer; the header and 8 bytes are known to be readable. */
static __always_inline int read_packet(const __u8 *ip, const __u8 *end, const int family,
				       bool balances)
{
	__s32 length = read_length(ip, family);

	if (length > end - ip)
		return NOT_COMMON;
	return read_l4(ip, end, family, length - header_of(family), balances);
}

static __always_inline int read_ip4(const __u8 *ip, const __u8 *end, bool balances)
{
	if (ip[0] != 0x45 || *(const __be16 *)(ip + 6) & bpf_htons(IP4_MORE | IP4_OFFSET))
		return NOT_COMMON;
	return read_packet(ip, end, 4, balances);
}

static __always_inline int read_ip6(const __u8 *ip, const __u8 *end, bool balances)
{
	if (ip + sizeof(struct ipv6hdr) + sizeof(struct udphdr) > end || ip[0] >> 4 != 6)
		return NOT_COMMON;
	return read_packet(ip, end, 6, balances);
}

static __always_inline bool is_icmp_view(const struct view v)
{
	return v.base == BASE_ICMP;
}

/* Network order; POLICY_NO_PORT. */
static __always_inline __u64 port_of(const struct view v, const int family, const int offset)
{
	if (unlikely(is_icmp_view(v)))
		return POLICY_NO_PORT;
	return *(const volatile __be16 *)(v.ip + header_of(family) + offset);
}

/* Type and code. */
static __always_inline __u64 icmp_of(const struct view v, const int family)
{
	return read16(v.ip + header_of(family));
}

/* For callers that need most fields. */
static __always_inline struct key key_of(const struct view v, const int family)
{
	const __u8 *ip = v.ip;
	struct key k = {
		.base = v.base,
		.length = read_length(ip, family),
	};

	if (family == 4) {
		k.src_hi = read32(ip + 12);
		k.dst_hi = read32(ip + 16);
	} else {
		k.src_hi = read64(ip + 8);
		k.src_lo = read64(ip + 16);
		k.dst_hi = read64(ip + 24);
		k.dst_lo = read64(ip + 32);
	}
	return k;
}

static __always_inline const __u8 *address_at(const struct view v, const int family, const int side)
{
	if (family == 4)
		return v.ip + (side == SIDE_SOURCE ? 12 : 16);
	return v.ip + (side == SIDE_SOURCE ? 8 : 24);
}

static __always_inline __u64 address_row_of(const struct view v, const int family, const int side,
					    const bool small)
{
	const __u8 *at = address_at(v, family, side);

	return family == 4 ? table4_row(NULL, side, read32(at), small)
			   : table6_row(NULL, side, read64(at), read64(at + 8), small);
}
