// SPDX-License-Identifier: GPL-2.0-only
// IP addresses and prefixes: parsed, formatted, compared; both families in one type.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addr {
	uint8_t family;    // 4 or 6
	uint8_t bytes[16]; // network byte order; for family 4 the first four, the rest zero
};

struct prefix {
	struct addr addr; // host bits are zero
	uint8_t len;      // 0..32 or 0..128
};

#define ADDR_TEXT 64
typedef char addr_text[ADDR_TEXT];

// A plain address in its usual notation (RFC 4291 section 2.2 for IPv6, four decimal parts without
// leading zeros for IPv4). "::ffff:192.0.2.1" gives 192.0.2.1 and sets *ret_mapped (may be NULL).
// 0 or -EINVAL.
int addr_parse(const char *text, size_t len, struct addr *ret, bool *ret_mapped);

// The IPv4 address in an IPv4-mapped one; any other address is returned unchanged.
struct addr addr_unmapped(const struct addr *a);

// An address or ADDRESS/LENGTH. 0 or -EINVAL; prefix_parse() also gives the reason.
int prefix_parse_quiet(const char *text, size_t len, struct prefix *ret, bool *ret_mapped);
// The same, but host bits are cleared: "192.0.2.7/24" is 192.0.2.0/24.
int prefix_parse_masked(const char *text, size_t len, struct prefix *ret, bool *ret_mapped);

// Could this word be meant as an address: only digits, dots, colons, '/', '-', '%', or hexadecimal
// with a colon? Everything else is a name.
bool addr_looks_like(const char *text, size_t len);

const char *addr_format(const struct addr *a, addr_text buf);     // RFC 5952
const char *prefix_format(const struct prefix *p, addr_text buf); // no "/32", "/128" for hosts

unsigned addr_bits(const struct addr *a);                   // 32 or 128
struct prefix prefix_of(const struct addr *a, uint8_t len); // masks the host bits off
bool prefix_is_host(const struct prefix *p);
bool prefix_contains(const struct prefix *outer, const struct prefix *inner);
bool prefix_overlaps(const struct prefix *a, const struct prefix *b);
// Order: family, address bytes, then shorter prefixes first: a prefix precedes the prefixes that it
// contains.
int addr_compare(const struct addr *a, const struct addr *b);
int prefix_compare(const struct prefix *a, const struct prefix *b);

struct addr addr_from_v4(uint32_t addr_be);
struct addr addr_from_v6(const uint8_t bytes[16]);
bool addr_is_loopback(const struct addr *a);    // 127/8, ::1
bool addr_is_unspecified(const struct addr *a); // 0.0.0.0, ::
bool addr_is_link_local(const struct addr *a);  // 169.254/16, fe80::/10
// Can another host have it? Not loopback, unspecified and multicast addresses, and 255.255.255.255.
bool addr_is_remote(const struct addr *a);
