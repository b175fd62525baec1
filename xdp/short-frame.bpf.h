/* SPDX-License-Identifier: GPL-2.0-only */
/* A common packet in its frame: the positions of its fields, and whether it can be sent. */
#pragma once

#include <linux/ip.h>
#include <linux/ipv6.h>

#include "xdp/csum.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/short-key.bpf.h"
#include "xdp/tables.bpf.h"

/* The position of the packet. Its headers have been read, so they are readable: 20 bytes of TCP, 8
 * of UDP. A field that is read again here need not be kept in between. */
struct vip_place {
	const __u8 *frame;
	const __u8 *ip;
};

static __always_inline bool is_syn(const struct key k)
{
	return k.base < BASE_UDP && (k.base & 0x12) == 0x02;
}

static __always_inline __u32 header_bytes(const int family)
{
	return family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* Both addresses, as in the packet. */
static __always_inline const __u32 *addresses_of(const __u8 *ip, const int family)
{
	return (const void *)(ip + (family == 4 ? 12 : 8));
}

static __always_inline __u8 proto_of(const __u8 *ip, const int family)
{
	return family == 4 ? ip[9] : ip[6];
}

static __always_inline const __u16 *l4_of(const __u8 *ip, const int family)
{
	return (const void *)(ip + header_bytes(family));
}

static __always_inline __u64 pseudo_common(const __u8 *ip, const struct key k, const int family)
{
	const __u32 *src = addresses_of(ip, family);

	return pseudo_sum(family, src, src + (family == 4 ? 1 : 4), k.length - header_bytes(family),
			  proto_of(ip, family));
}

/* Can the frame be sent unchanged? UDP that ends before IP does is not common. */
static __always_inline bool is_ready(struct xdp_md *ctx, const struct key k, const int family,
				     const struct vip_place at)
{
	const __u8 *end = (const void *)(long)ctx->data_end;
	const __u16 *l4 = l4_of(at.ip, family);
	__u16 check;

	if (end - at.ip != k.length && end - at.frame > FRAME_SHORT)
		return false;
	if (at.ip[family == 4 ? 8 : 7] <= 1)
		return false;
	if (k.base == BASE_UDP) {
		if (l4[2] != bpf_htons(k.length - header_bytes(family)))
			return false;
		check = l4[3];
	} else {
		check = l4[8];
	}
	return !may_be_partial(check, pseudo_common(at.ip, k, family));
}
