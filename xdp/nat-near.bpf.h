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

/* The address of an element. The compiler would add the offset in the table for each field. */
#define NAT_ELEMENT(table, number) \
	((typeof(&nat()->table[0]))BOUND_HIDE((long)&nat()->table[number]))

/* In the lowest bit; 0: it is in no table. */
static __always_inline __u64 nat_near(__u64 mix)
{
	return SHIFT_RIGHT(nat()->near[nat_near_word(mix)], mix >> NAT_NEAR_SHIFT);
}

/* Destination unreachable, time exceeded, parameter problem; "too big" of IPv6. */
static __always_inline bool nat_is_error(const int family, __u8 type)
{
	return family == 4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
}

/* Bits: the kinds of answer that a common packet may be, by the filter. */
#define NAT_TO_SOURCE 1 /* an answer of fullnat */
#define NAT_OF_NAT    2 /* from a backend's address and port, or an ICMP error, which may quote */

static __always_inline __u64 nat_may_answer(const __u8 *ip, const int family, __u32 base)
{
	const __u32 *src = addresses_of(ip, family), *dst = src + (family == 4 ? 1 : 4);
	const __u16 *l4 = l4_of(ip, family);
	__u64 to, of;

	if (base >= BASE_ICMP)
		return nat_is_error(family, *(const volatile __u8 *)l4) ? NAT_OF_NAT : 0;
	to = nat_near(nat_mix(family, dst, 0));
	of = nat_near(nat_mix(family, src, nat_port_proto(*l4, proto_of(ip, family))));
	return (to & NAT_TO_SOURCE) | (of << 1 & NAT_OF_NAT);
}

static __always_inline const struct nat_end *nat_end_at(__u64 number)
{
	return NAT_ELEMENT(end, BOUND(number, NAT_ENDS - 1));
}

static __always_inline const struct nat_use *nat_uses_all(void)
{
	return (const void *)MARKER_PTR(MARK_NAT_USES);
}

static __always_inline const struct nat_use *nat_use_of(__u64 end)
{
	return nat_uses_all() + BOUND(end, NAT_ENDS - 1);
}

/* 0: they are the same. */
static __always_inline __u32 address_differs(const int family, const __u32 *a, const __u32 *b)
{
	if (family == 4)
		return a[0] ^ b[0];
	return (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]);
}

static __always_inline bool same_address(const int family, const __u32 *a, const __u32 *b)
{
	return !address_differs(family, a, b);
}

static __always_inline const __u32 *nat_dst_of(const __u8 *ip, const int family)
{
	return addresses_of(ip, family) + (family == 4 ? 1 : 4);
}

/* The number of the end that the packet is for, or 0. */
static __always_inline __u64 nat_end_of(const int family, const __u32 *vip, __u32 port_proto)
{
	const struct nat_end wanted = {.port_proto = port_proto, .family = family};
	__u64 mix = nat_mix(family, vip, port_proto);

#pragma unroll
	for (int i = 0; i < 2; i++) {
		__u64 number = BOUND(nat()->end_at[i][nat_end_cell(mix, i)], NAT_ENDS - 1);
		const struct nat_end *end = NAT_ELEMENT(end, number);

		if (!((end->kind ^ wanted.kind) | address_differs(family, end->vip, vip)))
			return number;
	}
	/* A number as any other, or the verifier would follow it apart. */
	return BOUND(BOUND_FORGET(0, mix), NAT_ENDS - 1);
}

/* The same for a common packet, with what the policy does with the end; NULL: it has and had no
 * service for it. */
static __always_inline const struct nat_use *nat_use_for(const __u8 *ip, const int family,
							 __u64 *ret_end)
{
	const __u32 key = nat_port_proto(l4_of(ip, family)[1], proto_of(ip, family));
	const struct nat_use *use;

	*ret_end = nat_end_of(family, nat_dst_of(ip, family), key);
	/* In one register: the compiler would add up its address each time. */
	use = (const void *)BOUND_HIDE((long)(nat_uses_all() + *ret_end));
	return use->mode == NAT_USE_NONE ? NULL : use;
}
