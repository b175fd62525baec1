// SPDX-License-Identifier: GPL-2.0-only
// Which rule counter belongs to which rule.
//
// The identity of a rule is its name, else its text. Its counter stays the same in every apply, so
// that counters survive it. There are four times as many counters as rules. A counter that no
// pinned generation uses is free, whatever the map contains: a killed command may have left it, and
// the next command reuses it.
#pragma once

#include "common/counters.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/image.h"

struct identity_counter {
	struct identity_key key;
	uint32_t index; // of the rule counter
};
struct identity_counters {
	struct identity_counter *at;
	size_t n, cap;
};

// The changes of an image in the pinned maps.
struct identities {
	struct identity_counters gone;  // that no generation uses
	struct identity_counters fresh; // keys of identities that had no counter
};
void identities_free(struct identities *ids);

// Assigns a counter to every rule of the image: the one its identity has, else a free one. Reads
// the maps and changes nothing. The caller holds the lock. 0 or -errno with err set.
int identities_plan(const struct instance *i, struct image *image, struct identities *ret,
		    struct err *err);
// Writes the plan into the maps and zeroes fresh counters. 0, or -errno with err set and the
// identities as before.
int identities_enter(const struct instance *i, const struct identities *ids, struct err *err);
// Takes the plan back.
void identities_leave(const struct instance *i, const struct identities *ids);

// The index of an identity's counter; -ENOENT when it has none.
int identities_index(const struct instance *i, const char *identity, uint32_t *ret_index);
