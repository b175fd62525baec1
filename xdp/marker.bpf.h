/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants that user space writes into the instructions before a load.
 *
 * The verifier knows their values and removes the code that they switch off, as with read-only
 * data; unlike that they cost no load, and a table's address costs no look-up. The number of a
 * marker is a constant once everything is inlined: MARK_TABLES + SIDE_CONSTANT(side, H4_SEED). */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "common/markers.h"

/* Its number, __u64. Volatile: one instruction where it is used costs less than a register or the
 * stack in between, and is removed together with dead code by the verifier. */
#define MARKER(number)                                                     \
	({                                                                 \
		__u64 marker_;                                             \
                                                                           \
		asm volatile("%0 = %1 ll"                                  \
			     : "=r"(marker_)                               \
			     : "i"(MARKER_MAGIC << 32 | (__u32)(number))); \
		marker_;                                                   \
	})
/* Is its number `value`? User space replaces it by a jump that is always taken, or by nothing:
 * unlike a comparison it costs nothing if it does not jump. The program continues if the number is
 * another one. */
static __always_inline bool marker_is(const int number, const int value)
{
	asm goto("if r10 == %0 goto %l[yes]" : : "i"(MARKER_JUMP(number, value)) : : yes);
	return false;
yes:
	return true;
}

/* Its address. A map that is written there through a cast must not be frozen. */
#define MARKER_PTR(number) ((const __u8 *)MARKER(number))

/* The element `index` of a table of `type`, or NULL where the table does not have so many. One
 * piece: kernel 6.1 does not connect a number with its copy on the stack, so the compiler must not
 * come between the test and the sum. */
#define MARKER_ELEMENT(type, table, count, index)             \
	({                                                    \
		type *element_ = (type *)MARKER_PTR(table);   \
		__u64 index_ = (index);                       \
                                                              \
		asm("if %1 < %2 goto +2\n"                    \
		    "%0 = 0\n"                                \
		    "goto +2\n"                               \
		    "%1 *= %3\n"                              \
		    "%0 += %1"                                \
		    : "+r"(element_), "+r"(index_)            \
		    : "r"(MARKER(count)), "i"(sizeof(type))); \
		element_;                                     \
	})
