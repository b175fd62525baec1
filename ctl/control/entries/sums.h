// SPDX-License-Identifier: GPL-2.0-only
// Sums the counters of entries by owner. An entry counts in full for each origin and each list that
// refers to it, so sums of several owners can exceed what the datapath counted.
#pragma once

#include "common/counters.h"
#include "ctl/control/entries/listing.h"

// The entries of one origin, or of one of its lists, with one verb.
struct owner_sum {
	char *origin, *list; // list "": all entries of the origin
	const char *verb;    // "block"
	uint64_t entries;
	struct counter total;
	struct counter moved; // in a time that the caller knows
	size_t last;          // number of the entry that was added last
};

struct owner_sums {
	struct owner_sum *at; // sorted by list, origin, verb
	size_t n, cap;
	size_t hint; // the sum that was found last
};
void owner_sums_free(struct owner_sums *s);

// Adds an entry with its counters. number: of the entry in its walk, from 1 on. moved: NULL: not
// known.
void owner_sums_add(struct owner_sums *origins, struct owner_sums *lists, const struct entry *entry,
		    size_t number, const struct counter *moved);
