/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers of backends to checks through the path.
 *
 * Such a check is sent from a socket in a namespace of the agent to the VIP. The answer is
 * addressed to this host, whose stack knows no such connection. So the datapath gives the frames of
 * a flow that the agent has entered another ethertype: the stack has no handler for it and drops
 * them, and a packet socket of the agent gets them. */
#pragma once

#include <linux/types.h>

/* Local experimental ethertype 1 of IEEE 802. */
#define ANSWER_ETHERTYPE 0x88b5
/* Ports of the checks. Only packets to one of these ports are looked up, in policies with such
 * checks. */
#define ANSWER_PORT_FIRST 0x7000u
#define ANSWER_PORT_MASK  0xf000u
#define ANSWER_PORTS      0x1000u

struct answer_key {
	__u32 source[4], dest[4]; /* network order; IPv4 in [0], the rest zero */
	__u16 sport, dport;       /* host order */
	__u32 proto;
};
