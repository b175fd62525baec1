// SPDX-License-Identifier: GPL-2.0-only
// Random sets of addresses, and sources drawn from inside or outside of them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct set {
	uint8_t family;
	struct prefix *at; // sorted by prefix_compare, no doubles
	size_t n;
	// Those that no other one contains: ranges in order, to find an address in.
	const struct prefix **outer;
	size_t outer_n;
};

// n hosts, or n prefixes as they are announced: IPv4 /20 to /31, most of them /24; IPv6 /32 to /64. The
// same for the same seed.
void set_hosts(uint8_t family, size_t n, uint64_t seed, struct set *ret);
void set_prefixes(uint8_t family, size_t n, uint64_t seed, struct set *ret);
void set_free(struct set *s);
#define CLEANUP_SET CLEANUP(set_free)

// One address or prefix a line. Ends the bench when it cannot be written.
void set_write(const struct set *s, const char *path);

enum kind {
	KIND_PRESENT,
	KIND_ABSENT,
	KIND_MIX, // one half each, in random order
};

// n sources for packets, in random order: hosts of the set, or hosts that are in none of the sets.
void set_draw(const struct set *const *sets, size_t sets_n, enum kind kind, size_t n, uint64_t seed,
	      struct addr *ret);

// A reproducible sequence: splitmix64 (Steele, Lea, Flood 2014).
uint64_t random_next(uint64_t *state);
