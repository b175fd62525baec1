/* SPDX-License-Identifier: GPL-2.0-only */
/* The markers of a policy: constants in the instructions that user space replaces before each load
 * (xdp/marker.bpf.h), by a number, or by the address of a byte in an array map of one value.
 *
 * Lines are X(SYMBOL); MARK_SYMBOL is the marker's number. The numbers are valid only in this
 * build: a generation keeps its values with a digest of these names, and the test program of
 * another build refuses them (ctl/datapath/markers.h). */
#pragma once

#include "common/tables.h"

/* clang-format off */
/* Words that few policies have; 1: this one has it. For other policies nothing remains of their
 * jumps, so the verifier takes a policy without the word as if the word did not exist. */
#define WEIR_WORD_MARKERS(X) \
	X(MACS) /* mac */ \
	X(PAIRS) /* a set of pairs */ \
	X(UNROUTABLE) /* unroutable */ \
	X(UNTRACKED) /* not established */ \
	X(PORT_LIMITS) /* a limit per source and port */ \
	X(SET_COUNTS) /* a dynamic set that counts */ \
	X(CONNECTIONS) /* over N connections per source */

#define WEIR_MARKERS(X) \
	/* programs */ \
	X(TEST) /* 1: a test program, which counts and writes nothing */ \
	X(HANDED_ON) /* 1: packets come from the short program */ \
	X(REORDERS) /* 1: this machine reorders reads (xdp/order.bpf.h) */ \
	/* of the policy */ \
	X(NAMED) /* 1: it names interfaces */ \
	X(BALANCES) /* 1: it has services */ \
	X(DEFAULT_DROP) /* as policy_config.default_drop */ \
	X(MALFORMED_PASS) /* 1: malformed packets are counted and passed instead of dropped */ \
	X(MODES) /* as policy_config.modes */ \
	X(ANSWERS) /* 1: it has checks through the path */ \
	X(ESTABLISHED) /* 1: some rule asks connection tracking */ \
	WEIR_WORD_MARKERS(X) \
	/* interfaces */ \
	X(IFCLASS) /* struct policy_ifclass */ \
	/* the overlay: end of the counters in a shard */ \
	X(SHARD4_END) \
	X(SHARD6_END) \
	/* services: tables, and how many elements each has */ \
	X(SERVICES) \
	X(SERVICES_N) \
	X(SLOTS) \
	X(SLOTS_N) \
	X(BACKENDS) \
	X(BACKENDS_N) \
	/* services in nat or fullnat: 0: none, 2: some have left it, 1: others */ \
	X(NATS) \
	/* struct nat_table; struct nat_use */ \
	X(NAT) \
	X(NAT_USES)
/* clang-format on */

/* Functions of connection tracking that programs call: instead of the number of a helper. */
enum {
	MARKER_CALL_FIRST = 0x77000000,
	MARKER_CALL_LOOKUP = MARKER_CALL_FIRST,
	MARKER_CALL_RELEASE,
	MARKER_CALLS = 2,
};

enum marker_number {
#define X(symbol) MARK_##symbol,
	WEIR_MARKERS(X)
#undef X
		MARK_TABLES, /* + SIDE_CONSTANT(…) or MATRIX_CONSTANT(…) of common/tables.h */
	MARKERS = MARK_TABLES + TABLE_CONSTANTS,
};

/* The upper half of a marker in the program as compiled; the lower half is its number. */
#define MARKER_MAGIC 0x5765af1dull

/* A marker that decides a jump, as compiled: "if r10 == MARKER_JUMP(…) goto". No other code
 * compares the register of the stack with a number. It jumps if the marker's number is `value`,
 * below 2^15. */
#define MARKER_JUMP(number, value)  ((number) | (value) << 16)
#define MARKER_JUMP_NUMBER(operand) ((operand)&0xffff)
#define MARKER_JUMP_VALUE(operand)  ((operand) >> 16)

/* The mask in the second of three instructions that make an address depend on a read
 * (xdp/order.bpf.h), as compiled: a number that no other mask has. It becomes 0 if the marker
 * REORDERS is 1; else the three instructions do nothing. */
#define MARKER_ORDER 0x3a71c5d2
