/* SPDX-License-Identifier: GPL-2.0-only */
/* Can a packet be an answer of a backend of nat or fullnat? Most other packets are recognised by
 * two bits of a filter. */
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
