// SPDX-License-Identifier: GPL-2.0-only
// MAC addresses as numbers of 48 bits: parsed strictly, and formatted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAC_LAST 0xffffffffffffull

// Six pairs of hexadecimal digits with colons, text[0..len) whole; 0 or -EINVAL.
int mac_parse(const char *text, size_t len, uint64_t *ret);
uint64_t mac_of_bytes(const uint8_t bytes[6]);
// Is it an address that several routers share: of VRRP and CARP, HSRP or GLBP?
bool mac_is_shared(uint64_t mac);
typedef char mac_text[18];
const char *mac_format(uint64_t mac, mac_text buf); // lower case; returns buf
