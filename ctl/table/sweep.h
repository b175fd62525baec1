// SPDX-License-Identifier: GPL-2.0-only
// Combines all sets of source or destination addresses that rules use.
#pragma once

#include "ctl/policy/resolved.h"
#include "ctl/table/regions.h"
#include "ctl/table/rows.h"

// A set and the rules that use it on this side.
struct side_set {
	const struct resolved_addresses *set;
	VEC(struct set_bits {
		size_t word;
		uint64_t bits;
	})
	rules;
};

struct sweep_side {
	const struct resolved *in;
	struct row base; // rules that every address satisfies
	VEC(struct side_set) sets;
};

// The rules and sets of FIELD_SOURCE or FIELD_DESTINATION.
void side_init(struct sweep_side *side, const struct resolved *r, enum policy_field field,
	       size_t words);
void side_free(struct sweep_side *side);

// Cuts the addresses of a family (4 or 6) into regions. new_rows[i] grows by the rows that were new
// where resolved.addresses[i] begins or ends. False when there is no room for a row.
bool sweep(const struct sweep_side *side, int family, struct rows *rows, uint64_t *new_rows,
	   struct regions *ret);
