// SPDX-License-Identifier: GPL-2.0-only
// Puts the references of an index into the order of their prefixes.
#pragma once

#include "ctl/control/entries/journal_index.h"

struct journal_order {
	uint32_t *at; // numbers of the references, sorted by prefix, then kind
	size_t n;
	size_t moved; // references that had to be sorted; the others are in order in the index
};
// Few references are out of order: a snapshot is written in order, and later references are at the
// end or in the slots of removed ones. The cost is thus one walk and the sort of these few.
struct journal_order journal_order(const struct journal_index *x);
void journal_order_free(struct journal_order *o);
#define CLEANUP_JOURNAL_ORDER CLEANUP(journal_order_free)
