// SPDX-License-Identifier: GPL-2.0-only
// A sampled packet as it arrived: without the headers that Weir had written before it was recorded.
// Pure.
#pragma once

#include "common/sample.h"
#include "ctl/control/packet.h"

struct sampled_packet {
	struct packet_fields fields; // without VLAN tags
	uint8_t ttl;                 // or hop limit; of an IP packet
	uint32_t front;              // bytes that Weir has put before the packet
};

void sampled_read(const struct sampled *sample, struct sampled_packet *ret);
