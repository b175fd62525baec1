// SPDX-License-Identifier: GPL-2.0-only
// The values that a rule or set of nft lists, as intervals.
#pragma once

#include "ctl/import/ruleset.h"
#include "ctl/import/words.h"

// Why values cannot be read.
#define VALUE_UNKNOWN -1 // a form or word that is not known
#define VALUE_CHANGES -2 // a set that changes while the rules are active

#define VALUE_DYNAMIC 8 // dynamic sets of a policy

// Sets that have been read, also those whose values are not known.
struct value_cache {
	const struct json *dynamic[VALUE_DYNAMIC]; // that become dynamic sets
	size_t n_dynamic;
	void *sets;  // of tsearch, in the arena
	void *pairs; // the same, of sets of pairs
	size_t work; // elements read since the caller has set it to 0
};

struct value_place {
	const struct ruleset *ruleset;
	const struct nft_chain *chain; // whose sets names refer to
	struct arena *arena;
	bool drops; // for a rule that drops: of a set that changes, its permanent elements
	struct value_cache *cache; // NULL: none
};

// `families` has one bit for KIND_ADDRESS. 0 or VALUE_….
int value_read(const struct value_place *place, const struct json *j, enum import_kind kind,
	       uint8_t families, struct values *ret);
// The elements of {"set": […]}, of a set or map "@NAME", or a single value. NULL: no such set.
const struct json *value_elements(const struct value_place *place, const struct json *j);
// Do packets or commands change the set while the rules are active?
bool value_changes(const struct ruleset *r, const struct json *set);
// The set of addresses of this family, if a dynamic set can have its elements that expire: commands
// fill it, and no rule. NULL: another value, or the policy has too many dynamic sets.
const struct json *value_dynamic(const struct value_place *place, const struct json *j,
				 uint8_t families);
void value_cache_free(struct value_cache *c);
// Does the element of a set have a timeout?
bool value_expires(const struct json *element);
