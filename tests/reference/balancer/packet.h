// SPDX-License-Identifier: GPL-2.0-only
// Frames of a flow, and the destination of an encapsulated frame.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

#define PACKET_MAX 256

struct flow {
	uint8_t proto; // IPPROTO_TCP, _UDP or _SCTP
	struct addr src, dst;
	uint16_t sport, dport;
};

// Effects of a packet on its flow.
enum packet_kind { PACKET_OTHER, PACKET_OPENS, PACKET_CLOSES };

// Writes the flow's frame, bytes from Ethernet on; returns their number. An opening packet is a SYN
// or an INIT, a closing one a FIN or RST; other ones are of all kinds: ACK, SYN with ACK, data.
size_t packet_make(const struct flow *f, enum packet_kind kind, uint8_t ret[PACKET_MAX]);
// The last 32 bits of the outermost destination, host order. False: the frame is too short, or not
// IP.
bool packet_target(const uint8_t *frame, size_t len, uint32_t *ret);
