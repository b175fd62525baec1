// SPDX-License-Identifier: GPL-2.0-only
// A captured frame: its fields, and all of it in one line.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/cmd/out.h"

#define PACKET_VLANS_MAX 8

// What of a frame was captured. Where a flag is false, the fields it speaks of are not known.
struct packet_fields {
	size_t length; // of what was captured
	bool ethernet; // else not even its header is there
	uint16_t vlans[PACKET_VLANS_MAX];
	size_t n_vlans;
	uint16_t ethertype; // behind the tags
	bool ip;            // addresses and protocol
	struct addr from, to;
	uint8_t proto;
	bool later; // a fragment that is not the first: nothing behind the IP header
	bool ports, tcp, icmp;
	uint16_t from_port, to_port;
	uint8_t flags, type, code;
};

// Reads at most len bytes; what is cut off is left out.
void packet_read(const uint8_t *frame, size_t len, struct packet_fields *ret);
// As keys of the open object: vlans, ethertype, from, to, protocol, from_port, to_port, flags, type, code,
// fragment; those that are known.
void packet_set_fields(struct out *o, const struct packet_fields *p);

// "tcp 192.0.2.1:443 > 10.0.0.1:40000 [syn]", "vlan 7 arp", "ip6 2001:db8::1 > 2001:db8::2 proto 47
// fragment". Reads at most len bytes; what is cut off is left out. Always terminates buf.
void packet_describe(const uint8_t *frame, size_t len, char *buf, size_t size);
