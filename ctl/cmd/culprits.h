// SPDX-License-Identifier: GPL-2.0-only
// Finds the rule or entry that dropped a packet, for weir watch. The answers are cached.
#pragma once

#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay.h"

struct culprit_rule {
	uint32_t id; // of its counters
	char *name;
};

struct culprits {
	const struct instance *instance;
	VEC(struct culprit_rule) rules; // of `generation`
	uint32_t generation;            // 0: not read
	uint64_t asked_s;               // when the current generation was last read
	struct overlay_entries entries; // sorted, of `epoch`
	uint64_t epoch;
	bool read;
};

void culprits_free(struct culprits *c);

// The name or text of the rule whose counters have this id; "rule N" if its record cannot be read.
const char *culprits_rule(struct culprits *c, uint32_t id);
// The entry of that kind that decides about an address; NULL: no such entry, or it has expired.
const struct prefix *culprits_entry(struct culprits *c, const struct addr *a, uint8_t kind);
