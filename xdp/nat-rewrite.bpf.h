/* SPDX-License-Identifier: GPL-2.0-only */
/* The translation of a common packet in its frame: addresses, ports, checksums and link header. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "xdp/csum.bpf.h"
#include "xdp/outer.bpf.h"
#include "xdp/short-frame.bpf.h"

/* The addresses and ports that a packet gets, as in the packet. */
struct nat_names {
	__u32 src[4], dst[4]; /* IPv4 in [0] */
	__u32 ports;          /* both, the source first in memory */
};

/* A growth of sums: 0 modulo 65535, and so large that no difference makes it negative. */
#define NO_GROWTH (0xffffull << 24)

/* A checksum after the sum of what it covers has grown by `growth`, below 2^47 (RFC 1624,
 * equation 3). */
static __always_inline __u16 sum_moved(__u16 check, __u64 growth)
{
	return csum_fold((__u16)~check + growth);
}

static __always_inline __u64 word_moved(__u32 old, __u32 new)
{
	return (__u64)(__u32)~old + new;
}

/* Writes the addresses; returns the growth of their sum. */
static __always_inline __u64 put_addresses(__u32 *at, const int family, const struct nat_names *n)
{
	const int words = family == 4 ? 1 : 4;
	__u64 growth = NO_GROWTH;

#pragma unroll
	for (int i = 0; i < words; i++) {
		growth += n->src[i];
		growth -= at[i];
		growth += n->dst[i];
		growth -= at[words + i];
		at[i] = n->src[i];
		at[words + i] = n->dst[i];
	}
	return growth;
}

/* UDP without a checksum remains without. */
static __always_inline void move_udp(__u16 *check, __u64 growth)
{
	__u16 new;

	if (!*check)
		return;
	new = sum_moved(*check, growth);
	*check = new ? new : 0xffff;
}

/* The header of IP, with one hop less; returns the growth of the sum of the addresses. */
static __always_inline __u64 nat_put_header(const __u8 *ip, const int family,
					    const struct nat_names *n)
{
	__u64 growth = put_addresses((__u32 *)addresses_of(ip, family), family, n);
	struct iphdr *ip4 = (void *)ip;

	if (family == 4) {
		ip4->check = sum_moved(ip4->check, growth + (__u16)~bpf_htons(0x0100));
		ip4->ttl--;
	} else {
		hop_less6((void *)ip);
	}
	return growth;
}

/* Both headers, and one hop less. The packet is common and ready (is_ready()). */
static __always_inline void nat_translate(const __u8 *ip, const struct key k, const int family,
					  const struct nat_names *n)
{
	__u16 *l4 = (__u16 *)l4_of(ip, family);
	__u64 growth = nat_put_header(ip, family, n);

	growth += n->ports;
	growth -= *(__u32 *)l4;
	*(__u32 *)l4 = n->ports;
	if (k.base < BASE_UDP)
		l4[8] = sum_moved(l4[8], growth);
	else
		move_udp(&l4[3], growth);
}

/* The link header, before an IP header at `ip`; macs: as of write_macs(), in a map. */
static __always_inline bool nat_put_link(struct xdp_md *ctx, const struct vip_place at,
					 const int family, const void *macs, __u32 vlan)
{
	int move = (int)(at.ip - at.frame) - (int)link_bytes(vlan);
	void *frame = (void *)at.frame;

	if (unlikely(move)) {
		if (bpf_xdp_adjust_head(ctx, move))
			return false;
		frame = (void *)(long)ctx->data;
		if (frame + LINK_BYTES > (void *)(long)ctx->data_end)
			return false;
	}
	write_macs(frame, macs, vlan, family == 4 ? ETH_P_IP : ETH_P_IPV6);
	return true;
}
