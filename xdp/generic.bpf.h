/* SPDX-License-Identifier: GPL-2.0-only */
/* Distinguishes generic from native mode, and handles frames that only one delivers. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/test.bpf.h"

/* In generic mode redirected frames leave through the ordinary path, which completes checksums. A
 * test packet has no interface of arrival: one such interface is enough. */
static __always_inline bool is_generic(const struct xdp_md *ctx)
{
	return is_test() ? knobs.generic : knobs.generic >> iface_number(ctx) & 1;
}

/* Only in generic mode: a driver has no such frame, and on the wire a length of zero is
 * malformed. */
__noinline int merged_bytes(struct xdp_md *ctx, __u32 offset)
{
	__u64 length = bpf_xdp_get_buff_len(ctx);

	return length > (__u64)offset + IP_MAX_BYTES && is_generic(ctx) ? length - offset : 0;
}
