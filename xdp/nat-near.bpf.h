/* SPDX-License-Identifier: GPL-2.0-only */
/* Is a packet for an end of nat or fullnat, or can it be an answer of a backend? Most packets that
 * are no answer are recognised by two bits of a filter. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "common/nat.h"
#include "xdp/marker.bpf.h"
#include "xdp/service-maps.bpf.h"
#include "xdp/short-frame.bpf.h"

/* Kept by the instance. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct nat_table));
} nat_table SEC(".maps");

struct one_value nat_uses SEC(".maps"); /* struct nat_use, by number of an end */

static __always_inline struct nat_table *nat(void)
{
	return (struct nat_table *)MARKER_PTR(MARK_NAT);
}

static __always_inline bool nat_is_near(__u32 mix)
{
	return nat()->near[BOUND(nat_near_word(mix), NAT_NEAR_WORDS - 1)] & nat_near_bit(mix);
}

/* Destination unreachable, time exceeded, parameter problem; "too big" of IPv6. */
static __always_inline bool nat_is_error(const int family, __u8 type)
{
	return family == 4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
}

/* A common packet, from a backend's address and port, or to a source; an ICMP error may quote
 * one. */
static __always_inline bool nat_may_answer(const __u8 *ip, const int family, __u32 base)
{
	const __u32 *src = addresses_of(ip, family), *dst = src + (family == 4 ? 1 : 4);
	const __u16 *l4 = l4_of(ip, family);

	if (base >= BASE_ICMP)
		return nat_is_error(family, *(const volatile __u8 *)l4);
	return nat_is_near(nat_mix(family, dst, 0)) ||
	       nat_is_near(nat_mix(family, src, nat_port_proto(*l4, proto_of(ip, family))));
}

static __always_inline const struct nat_end *nat_end_at(__u64 number)
{
	return &nat()->end[BOUND(number, NAT_ENDS - 1)];
}

static __always_inline const struct nat_use *nat_use_of(__u64 end)
{
	const struct nat_use *uses = (const void *)MARKER_PTR(MARK_NAT_USES);

	return &uses[BOUND(end, NAT_ENDS - 1)];
}

static __always_inline bool same_address(const int family, const __u32 *a, const __u32 *b)
{
	if (family == 4)
		return a[0] == b[0];
	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
}

static __always_inline const __u32 *nat_dst_of(const __u8 *ip, const int family)
{
	return addresses_of(ip, family) + (family == 4 ? 1 : 4);
}

/* The number of the end that the packet is for, or 0. */
static __always_inline __u64 nat_end_of(const int family, const __u32 *vip, __u32 port_proto)
{
	__u32 mix = nat_mix(family, vip, port_proto);

#pragma unroll
	for (int i = 0; i < 2; i++) {
		__u32 cell = nat_end_cell(mix, i);
		__u64 number = nat()->end_at[i][BOUND(cell, NAT_END_CELLS - 1)];
		const struct nat_end *end = nat_end_at(number);

		if (number && end->port_proto == port_proto && end->family == (__u32)family &&
		    same_address(family, end->vip, vip))
			return number;
	}
	return 0;
}

/* Does a service whose mode is another one now have connections of nat or fullnat? */
static __always_inline bool nat_is_former(const __u8 *ip, const int family)
{
	const __u32 key = nat_port_proto(l4_of(ip, family)[1], proto_of(ip, family));

	return nat_use_of(nat_end_of(family, nat_dst_of(ip, family), key))->mode == NAT_USE_FORMER;
}
