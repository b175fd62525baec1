// SPDX-License-Identifier: GPL-2.0-only
// A small world of nat and fullnat: for each mode and family a VIP for TCP 80 and UDP 53 with one
// backend, which has port 8080, and in nat SCTP 9, too; one source. And TCP frames in it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/datapath/nat_rig.h"

#define NAT_WORLD_FRAME 128 // bytes for a frame
#define NAT_WORLD_PORT  8080

// In the order of the policy.
enum nat_world_service { NEAR4, FAR4, NEAR6, FAR6, SCTP4, SCTP6 };

// The last byte of addresses in 10.0.0.0/24 and fd00::/120.
enum nat_host { VIP_NAT = 1, VIP_FULLNAT, BACKEND, SOURCE, CLIENT };

// Packets from .66 are dropped, packets from .77 logged.
struct nat_rig *nat_world_new(bool former);

// Addresses in network order, IPv4 in the first four bytes; ports in host order.
struct nat_names_of_frame {
	uint8_t family;
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
};

// From port 40000 to port 80.
struct nat_names_of_frame nat_world_names(uint8_t family, uint8_t src, uint8_t dst);
// The names of the answer to a packet.
struct nat_names_of_frame nat_world_turned(const struct nat_names_of_frame *n);
// TCP without a payload, its checksum 0x1234. Returns the length.
size_t nat_world_frame(const struct nat_names_of_frame *n, uint8_t flags, uint8_t *out);
struct nat_names_of_frame nat_world_read(const uint8_t *frame);

// Makes a device and routes by it to the clients: its index; 0: none can be made here. Then removes
// it.
#define NAT_WORLD_NEIGHBOUR         \
	{                           \
		2, 0, 0, 0, 0, 0x55 \
	}
uint32_t nat_world_route(void);
void nat_world_unroute(void);
// The MTU of the device, or of the routes to the first client.
void nat_world_set_mtu(uint32_t mtu);
void nat_world_set_route_mtu(uint32_t mtu);
