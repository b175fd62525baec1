// SPDX-License-Identifier: GPL-2.0-only
// Sets of addresses by value: the longest matching prefix decides.
//
// One array holds one family. An IPv4 address is in the upper 32 bits of hi, so that both families
// compare alike. Each prefix has a rank: how strongly it means "in" or "not". Within a set the rank
// of a prefix is its length, and "not" wins a tie. When a set joins another one, its prefixes keep
// the rank they had, so that the longest prefix decides over both; a "not" of one set means nothing
// to the other set.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"
#include "ctl/policy/resolved.h"

struct cidr {
	uint64_t hi, lo; // host bits are zero
	uint32_t line;   // place
	uint16_t file;
	uint16_t rank; // 0: no rank; else 1 + 2 * length, plus 1 for "not"
	uint8_t len;
};

struct cidrs { // as VEC(struct cidr)
	struct cidr *at;
	size_t n, cap;
};

struct cidr_set { // {0} is an empty one
	struct cidrs v4, v6;
};

void cidr_add(struct cidr_set *s, const struct prefix *p, bool negated, struct place place);
// Sorts, and keeps of equal prefixes the one of the highest rank; the functions below want that.
void cidr_sort(struct cidr_set *s);
// Both sets together: for each address the higher rank of the two. Consumes a and b.
struct cidr_set cidr_merge(struct cidr_set *a, struct cidr_set *b);
// The elements of `s` for a set that includes it, or (negated) excludes it.
struct cidr_set cidr_member(const struct cidr_set *s, bool negated);
size_t cidr_count(const struct cidr_set *s);  // prefixes, including those without rank
bool cidr_is_empty(const struct cidr_set *s); // contains no address
void cidr_free(struct cidr_set *s);

// Only membership, minimal; negated: the complement over both families, whose new prefixes get
// ret->place. Fills the arrays, which live in the pool, and `empty`.
void cidr_resolve(const struct cidr_set *s, bool negated, struct arena *arena,
		  struct resolved_addresses *ret);
