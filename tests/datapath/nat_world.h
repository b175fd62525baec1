// SPDX-License-Identifier: GPL-2.0-only
// A small world of nat and fullnat: a VIP of each mode and family on port 80, a backend with port
// 8080, one source. And TCP frames in it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/datapath/nat_rig.h"

#define NAT_WORLD_IDLE_S 300
#define NAT_WORLD_FRAME  128 // bytes for a frame

// The last byte of addresses in 10.0.0.0/24 and fd00::/120.
enum nat_host { VIP_NAT = 1, VIP_FULLNAT, BACKEND, SOURCE, CLIENT };

// Addresses in network order, IPv4 in the first four bytes; ports in host order.
struct nat_names_of_frame {
	uint8_t family;
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
};

// From port 40000 to port 80.
struct nat_names_of_frame nat_world_names(uint8_t family, uint8_t src, uint8_t dst);
struct nat_rig *nat_world_new(void);
// TCP without a payload, its checksum 0x1234. Returns the length.
size_t nat_world_frame(const struct nat_names_of_frame *n, uint8_t flags, uint8_t *out);
struct nat_names_of_frame nat_world_read(const uint8_t *frame);
