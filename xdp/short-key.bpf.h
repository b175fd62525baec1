/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a packet in the stages of the short way: values, which the compiler keeps in
 * registers. */
#pragma once

#include "xdp/packet.bpf.h"

/* The fields of a packet for the stages of services. By value: its address is never taken, so that
 * it stays in registers. */
struct key {
	__u64 src_hi, src_lo, dst_hi, dst_lo; /* host order; IPv4 in src_hi and dst_hi */
	__u32 base;                           /* enum matrix_base, TCP's with the flags */
	__u32 length;                         /* of the IP packet */
};

/* The result for the packet. */
struct fate {
	__s32 reason;  /* GO_ON: the general program is asked */
	__u32 counter; /* number of the deciding rule; EVENT_NO_RULE */
	__u32 length;  /* of the packet */
	__s32 verdict; /* reason of a packet that passes */
};

#define ASK ((struct fate){.reason = GO_ON})
