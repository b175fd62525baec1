// SPDX-License-Identifier: GPL-2.0-only
// A captured frame in one line, for people.
#pragma once

#include <stddef.h>
#include <stdint.h>

// "tcp 192.0.2.1:443 > 10.0.0.1:40000 [syn]", "vlan 7 arp", "ip6 2001:db8::1 > 2001:db8::2 proto 47
// fragment". Reads at most len bytes; what is cut off is left out. Always terminates buf.
void packet_describe(const uint8_t *frame, size_t len, char *buf, size_t size);
