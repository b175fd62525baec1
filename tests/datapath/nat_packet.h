// SPDX-License-Identifier: GPL-2.0-only
// Builds packets with any headers, whose checksums are computed from all of their bytes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/datapath/frame.h"
#include "tests/datapath/nat_world.h"

enum nat_extra {
	NAT_OPTIONS = 1 << 0, // IPv4: options; IPv6: hop-by-hop and destination options
	NAT_PARTIAL = 1 << 1, // the checksum has the pseudo-header only
	NAT_NO_SUM = 1 << 2,  // UDP without a checksum
	NAT_TAGGED = 1 << 3,  // VLAN 7
	NAT_TAGGED_TWICE = 1 << 4,
	NAT_ROUTED = 1 << 5, // a source route whose end is not reached
};

// A packet; a fragment of it; or, with `about`, an ICMP error that quotes `quoted` bytes after the
// quoted IP header.
struct nat_sent {
	struct nat_names_of_frame names;
	// flags: of TCP; of SCTP: the type of its first chunk; of an error: its type
	uint8_t proto, flags;
	uint8_t ttl;
	unsigned int extra; // enum nat_extra
	size_t payload;
	uint16_t id;
	size_t from, to; // the fragment's bytes after the headers of IP; to 0: a whole packet
	size_t tail;     // bytes after the packet
	const struct nat_sent *about;
	size_t quoted;
	uint8_t mac[6], mac_own[6]; // source and destination of the frame
};

void nat_build(const struct nat_sent *p, struct frame *ret);
// Sends a packet through all programs. It says nothing of the ways: aside, in rig.h.
struct outcome nat_send(const struct nat_rig *r, const struct nat_sent *p);
