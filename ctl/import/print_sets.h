// SPDX-License-Identifier: GPL-2.0-only
// The sets of a policy, with a name for each.
#pragma once

#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/import/value.h"

#define POLICY_SET_NAME 31

enum policy_set_kind {
	SET_ADDRESSES,
	SET_PORTS,
	SET_MACS,
	SET_PAIRS,
	SET_DYNAMIC,
};

struct policy_set {
	char name[POLICY_SET_NAME + 1];
	enum policy_set_kind kind;
	const struct values *values; // unless it is dynamic, or has pairs
	const struct pairs *pairs;
	uint8_t family;             // of its addresses
	const struct json *dynamic; // the set of nft
};

struct policy_sets {
	VEC(struct policy_set) at;
	unsigned numbered; // names that have a number
};

// The name of the set with these values, or of a new one; valid until the next call.
const char *policy_set_of(struct policy_sets *sets, enum policy_set_kind kind,
			  const struct values *v, uint8_t family);
const char *policy_set_pairs(struct policy_sets *sets, const struct pairs *pairs);
// The same for a dynamic set.
const char *policy_set_dynamic(struct policy_sets *sets, const struct json *set);
// now_s: for elements that expire.
void policy_sets_print(const struct policy_sets *sets, uint64_t now_s, struct text *ret);
// An address, a prefix or a range.
void interval_print(const struct interval *v, uint8_t family, struct text *ret);
// MAC addresses, and ranges.
void macs_print(const struct values *v, struct text *ret);
// Addresses, prefixes and ranges; all but a few as exceptions.
void addresses_print(const struct values *v, uint8_t family, const char *between, struct text *ret);
