// SPDX-License-Identifier: GPL-2.0-only
// The fields of a captured frame. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

#define PACKET_VLANS_MAX 8

// The captured part of a frame. If a flag is false, its fields are unknown.
struct packet_fields {
	size_t length; // captured bytes
	bool ethernet; // it has an Ethernet header
	uint16_t vlans[PACKET_VLANS_MAX];
	size_t n_vlans;
	uint16_t ethertype; // after the VLAN tags
	bool ip;            // addresses and protocol
	struct addr from, to;
	uint8_t proto;
	bool later; // a fragment that is not the first: no transport header
	bool ports, tcp, icmp;
	uint16_t from_port, to_port;
	uint8_t flags, type, code;
};

// Reads len bytes. Fields that were not captured are left out.
void packet_read(const uint8_t *frame, size_t len, struct packet_fields *ret);
