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
// The first bytes of a captured frame, as sampled_read() takes them, and the bytes as the packet
// was counted when it arrived. ret->length has the length of the frame.
void sampled_fill(struct sampled *ret, const uint8_t *frame, size_t captured, uint32_t front);
// The frame as it arrived, without the `front` bytes after its link header. ret has room for
// `captured` bytes. Returns how many it has; *length: of the frame on the wire, which becomes that
// of the packet.
size_t sampled_restore(const uint8_t *frame, size_t captured, uint32_t front, uint8_t *ret,
		       size_t *length);
