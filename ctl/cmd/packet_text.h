// SPDX-License-Identifier: GPL-2.0-only
// Prints the fields of captured frames.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/cmd/out.h"
#include "ctl/control/packet.h"

// Sets the known fields in the open object: vlans, ethertype, from, to, protocol, from_port,
// to_port, flags, type, code, fragment.
void packet_set_fields(struct out *o, const struct packet_fields *p);

// "tcp 192.0.2.1:443 > 10.0.0.1:40000 [syn]", "vlan 7 arp", "ip6 2001:db8::1 > 2001:db8::2 proto 47
// fragment". Reads len bytes. Fields that were not captured are left out. buf is always
// NUL-terminated.
void packet_describe(const uint8_t *frame, size_t len, char *buf, size_t size);
