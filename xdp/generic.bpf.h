/* SPDX-License-Identifier: GPL-2.0-only */
/* Which of the kernel's two ways a frame has come. */
#pragma once

#include "xdp/count.bpf.h"
#include "xdp/twin.bpf.h"

/* In generic mode what is redirected leaves by the ordinary way, checksums and all. A test packet came in
 * nowhere: one such interface is enough for it. */
static __always_inline bool is_generic(const struct xdp_md *ctx)
{
	return config.twin ? knobs.generic : knobs.generic >> iface_number(ctx) & 1;
}
