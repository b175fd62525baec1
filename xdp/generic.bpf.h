/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells generic from native mode, and handles what only one of them delivers. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/test.bpf.h"

/* In generic mode what is redirected leaves by the ordinary way, checksums and all. A test packet
 * came in nowhere: one such interface is enough for it. */
static __always_inline bool is_generic(const struct xdp_md *ctx)
{
	return is_test() ? knobs.generic : knobs.generic >> iface_number(ctx) & 1;
}

/* In generic mode alone: a driver has no such frame, and on the wire a length of zero is
 * malformed. */
__noinline int merged_bytes(struct xdp_md *ctx, __u32 offset)
{
	__u64 length = bpf_xdp_get_buff_len(ctx);

	return length > (__u64)offset + IP_MAX_BYTES && is_generic(ctx) ? length - offset : 0;
}
