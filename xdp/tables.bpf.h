/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of the policy: one value, reached by constants in the instructions
 * (common/tables.h). */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/policy.h"
#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"

#define TABLE_NUMBER(v, constant) ((void)(v), MARKER(MARK_TABLES + (constant)))
#define TABLE_IS(v, constant, is) ((void)(v), marker_is(MARK_TABLES + (constant), is))
#define TABLE_AT(v, constant)     ((void)(v), MARKER_PTR(MARK_TABLES + (constant)))

#include "common/matrix.h"
#include "common/table4.h"
#include "common/table6.h"
#include "common/vips.h"

/* Its size is set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, TABLE_ALIGN);
} tables SEC(".maps");

/* Read-only data: the verifier removes what the policy does not use. */
const volatile struct policy_config policy = {};

/* Does the policy apply on the interface of arrival? Otherwise only entries do. */
static __always_inline bool policy_holds(const struct packet *pkt)
{
	/* Read each time: with two known values the verifier would walk the code in between
	 * twice. */
	return marker_is(MARK_NAMED, 0) || *(const volatile __u8 *)&pkt->iface;
}

/* Two words of an IPv6 address, in host order. */
static __always_inline __u64 address_half(const __u32 *be)
{
	return (__u64)bpf_ntohl(be[0]) << 32 | bpf_ntohl(be[1]);
}

/* The row of an address, network order; family 4 or 6. */
static __always_inline policy_row side_row(const int side, __u32 family, const __u32 *be)
{
	return family == 4 ? table4_row(NULL, side, bpf_ntohl(be[0]), false)
			   : table6_row(NULL, side, address_half(be), address_half(be + 2), false);
}

static __always_inline __u32 lowest_bit(__u64 word)
{
	return __builtin_popcountll(word ^ (word - 1)) - 1;
}
