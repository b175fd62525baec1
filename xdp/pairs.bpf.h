/* SPDX-License-Identifier: GPL-2.0-only */
/* The condition that address and port of one end are a pair of a set. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>

#include "xdp/packet.bpf.h"
#include "xdp/tables.bpf.h"

#include "common/edges.h"

/* 1 or 0. Global: the verifier follows the searches once. source: of the source, else of the
 * destination. */
__noinline int pairs_hold(struct packet *pkt, __u32 first, __u32 n, __u32 source)
{
	const __u32 *addr;
	__u64 number;
	__u32 port;

	if (!pkt || !pkt->has_l4 || !pkt->family)
		return 0;
	addr = source ? pkt->src : pkt->dst;
	port = source ? pkt->sport : pkt->dport;
	number = pkt->family == 4
			 ? pair_number4(bpf_ntohl(addr[0]), port)
			 : pair_number6(NULL, address_half(addr), address_half(addr + 2), port);
	return edges_hold(NULL, number, first, n);
}
