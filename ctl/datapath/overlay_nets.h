// SPDX-License-Identifier: GPL-2.0-only
// Stages, commits and recovers the prefixes of one family.
//
// A longest-prefix look-up finds one entry, so an entry of a prefix also carries the latest expiry
// of all wider prefixes of its kind. A change of a /8 restages every entry inside it. If no entry
// can be inside of a change, and no other change around it, one look-up finds the expiry of the
// wider ones. Otherwise all are visited in order, wider before narrower, with two stacks of the
// prefixes around the present one: before and after the change.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/overlay_table.h"

// Effect of a change on the number of entries.
struct overlay_tally {
	size_t added, changed, removed;
	size_t expired; // number of removed entries that no longer had an effect
	uint32_t more[OVERLAY_KINDS], fewer[OVERLAY_KINDS];
};
// One entry: its present and its future end. *ret_until: the end to write; false: it does not
// change.
bool overlay_tally(struct overlay_tally *t, uint8_t kind, const struct clock *now, uint64_t have,
		   uint64_t want, uint64_t *ret_until);

// Plans the elements that change, and frees them with net_elements_free. Nothing is written yet.
// change: only for this table. 0 or -errno with err set.
int nets_plan(const struct instance *i, enum overlay_table t, const struct clock *now,
	      const struct overlay_entry *change, size_t n, struct net_elements *ret,
	      struct overlay_tally *tally, struct err *err);
int nets_stage(const struct instance *i, enum overlay_table t, const struct net_elements *plan,
	       uint64_t epoch, struct err *err);
// After the commit.
void nets_settle(const struct instance *i, enum overlay_table t, const struct net_elements *plan);
// After a killed command. Counts the entries by kind.
int nets_recover(const struct instance *i, enum overlay_table t, uint32_t ret_n[OVERLAY_KINDS],
		 struct err *err);

// The committed expiry of an element; 0: it has no expiry of its own.
uint64_t net_own(const struct instance *i, const struct overlay_net *n);
