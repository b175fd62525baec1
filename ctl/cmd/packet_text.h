// SPDX-License-Identifier: GPL-2.0-only
// Reads the fields of captured frames and prints them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/cmd/out.h"

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
// Sets the known fields in the open object: vlans, ethertype, from, to, protocol, from_port,
// to_port, flags, type, code, fragment.
void packet_set_fields(struct out *o, const struct packet_fields *p);

// "tcp 192.0.2.1:443 > 10.0.0.1:40000 [syn]", "vlan 7 arp", "ip6 2001:db8::1 > 2001:db8::2 proto 47
// fragment". Reads len bytes. Fields that were not captured are left out. buf is always
// NUL-terminated.
void packet_describe(const uint8_t *frame, size_t len, char *buf, size_t size);
