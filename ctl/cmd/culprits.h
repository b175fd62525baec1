// SPDX-License-Identifier: GPL-2.0-only
// Which rule or entry dropped a packet, for `weir watch`; asked often, so answers are cached.
#pragma once

#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay.h"

struct culprit_rule {
	uint32_t row;
	char *name;
};

struct culprits {
	const struct instance *instance;
	VEC(struct culprit_rule) rules; // of the generation below
	uint32_t generation;            // 0: not read
	uint64_t asked_s;               // when it was last looked which one is in force
	struct overlay_entries rows;    // sorted, of the epoch below
	uint64_t epoch;
	bool read;
};

void culprits_free(struct culprits *c);

// The name or text of the rule whose counters are this row; "rule N" where its record cannot be read.
const char *culprits_rule(struct culprits *c, uint32_t row);
// The entry of that kind that decides about an address; NULL when there is none (any more).
const struct prefix *culprits_entry(struct culprits *c, const struct addr *a, uint8_t kind);
