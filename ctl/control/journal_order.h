// SPDX-License-Identifier: GPL-2.0-only
// The references of an index in the order of their prefixes.
#pragma once

#include "ctl/control/journal_index.h"

struct journal_order {
	uint32_t *at; // numbers of the references, sorted by prefix, then kind
	size_t n;
	size_t moved; // of these, how many had to be sorted: the others are in order in the index
};
// Few references are out of order: a snapshot was written in order, and what was added since is at
// the end or where something was removed. So this costs one walk, and sorting those few.
struct journal_order journal_order(const struct journal_index *x);
void journal_order_free(struct journal_order *o);
#define CLEANUP_JOURNAL_ORDER CLEANUP(journal_order_free)
