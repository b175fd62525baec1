/* SPDX-License-Identifier: GPL-2.0-only */
/* Two reads in the order in which they are written, on machines that reorder reads.
 *
 * x86 keeps the order of reads, arm64 does not: neither a test nor a call between two reads orders
 * them there. A program orders them by what Linux relies on itself
 * (Documentation/memory-barriers.txt; tools/memory-model/Documentation/ explanation.txt,
 * "Dependency Relations" and "Preserved Program Order"):
 *
 * - An address dependency: a read is ordered after another one from whose value its address is
 *   computed, even if the value does not matter for the result. A compiler could see that it does
 *   not matter;
 *   the JIT translates each instruction.
 * - A value-returning atomic operation is a full barrier (Documentation/atomic_t.txt, "ORDERING").
 *   BPF has no cheaper one on kernels before 6.15.
 *
 * A control dependency orders no reads. On x86 user space removes all of this from the programs. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "xdp/marker.bpf.h"

/* `value`, from which addresses are computed: reads there are ordered after the read of `seen`. One
 * piece, which ctl/datapath/markers.c replaces as a whole. */
#define AFTER(value, seen)                                             \
	({                                                             \
		typeof(value) after_ = (value);                        \
		__u64 order_;                                          \
                                                                       \
		asm volatile("%1 = %2\n"                               \
			     "%1 &= %3\n"                              \
			     "%0 += %1"                                \
			     : "+r"(after_), "=&r"(order_)             \
			     : "r"((__u64)(seen)), "i"(MARKER_ORDER)); \
		after_;                                                \
	})

/* Is it 0? The compiler does not learn that it is: AFTER() with a constant would order nothing. */
static __always_inline bool is_none(__u64 seen)
{
	asm goto("if %0 == 0 goto %l[yes]" : : "r"(seen) : : yes);
	return false;
yes:
	return true;
}

/* All earlier reads, including reads by helpers, precede all later reads. */
static __always_inline void read_barrier(void)
{
	if (marker_is(MARK_REORDERS, 1)) {
		volatile __u64 word = 0;

		__sync_lock_test_and_set(&word, 1);
	}
}
