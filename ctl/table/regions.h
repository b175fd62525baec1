// SPDX-License-Identifier: GPL-2.0-only
// The address space of a family cut into ranges, each with its row.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/base/vec.h"

// An address as the upper bits of a number, IPv4 in the first 32: one code serves both families.
typedef unsigned __int128 address_key;

static inline address_key key_of4(uint32_t addr)
{
	return (address_key)addr << 96;
}

static inline address_key key_of6(uint64_t hi, uint64_t lo)
{
	return (address_key)hi << 64 | lo;
}

// One address of the family, as a difference of keys.
static inline unsigned key_host_shift(int family)
{
	return family == 4 ? 96 : 0;
}

struct region { // up to the next one
	uint64_t hi, lo;
	policy_row row;
};

struct regions { // sorted; the first begins at 0; neighbours differ in their rows
	struct region *at;
	size_t n, cap;
};

static inline address_key region_first(const struct region *r)
{
	return key_of6(r->hi, r->lo);
}

// The end of the region: the first address after it, 0 for the last region.
static inline address_key region_end(const struct regions *r, size_t i)
{
	return i + 1 < r->n ? region_first(&r->at[i + 1]) : 0;
}

// Appends, or extends the last region when it has the same row.
static inline void regions_add(struct regions *r, address_key first, policy_row row)
{
	if (!r->n || vec_last(r)->row != row)
		vec_push(r, ((struct region){(uint64_t)(first >> 64), (uint64_t)first, row}));
}
