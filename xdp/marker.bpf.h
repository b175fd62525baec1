/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants that user space writes into the instructions before a load.
 *
 * The verifier knows their values and removes the code that they switch off, as with read-only data; unlike that they
 * cost no load, and a table's address costs no look-up. The number of a marker is a constant once everything is
 * inlined: MARK_TABLES + SIDE_CONSTANT(side, H4_SEED). */
#pragma once

#include <linux/types.h>

#include "common/markers.h"

/* Its number, __u64. Not volatile: equal ones are merged, unused ones go. */
#define MARKER(number)                                                                         \
	({                                                                                     \
		__u64 marker_;                                                                 \
                                                                                               \
		asm("%0 = %1 ll" : "=r"(marker_) : "i"(MARKER_MAGIC << 32 | (__u32)(number))); \
		marker_;                                                                       \
	})
/* Its address. What is written there through a cast must not be frozen. */
#define MARKER_PTR(number) ((const __u8 *)MARKER(number))
