// SPDX-License-Identifier: GPL-2.0-only
// Random sets of addresses, and random sources inside or outside these sets.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct set {
	uint8_t family;
	struct prefix *at; // sorted by prefix_compare, no duplicates
	size_t n;
	// Prefixes not contained in another one: ordered ranges in which an address is looked up.
	const struct prefix **outer;
	size_t outer_n;
};

// n hosts, or n prefixes of typical lengths: IPv4 /20 to /31, mostly /24; IPv6 /32 to /64. The same
// seed gives the same set.
void set_hosts(uint8_t family, size_t n, uint64_t seed, struct set *ret);
void set_prefixes(uint8_t family, size_t n, uint64_t seed, struct set *ret);
void set_free(struct set *s);
#define CLEANUP_SET CLEANUP(set_free)

// One address or prefix per line. Ends the bench on failure.
void set_write(const struct set *s, const char *path);

enum kind {
	KIND_PRESENT,
	KIND_ABSENT,
	KIND_MIX, // one half each, in random order
};

// n sources for packets, in random order: hosts inside the set, or hosts outside of all sets.
void set_draw(const struct set *const *sets, size_t sets_n, enum kind kind, size_t n, uint64_t seed,
	      struct addr *ret);

// A reproducible sequence: splitmix64 (Steele, Lea, Flood 2014).
uint64_t random_next(uint64_t *state);
