// SPDX-License-Identifier: GPL-2.0-only
// The tables of the overlay; common/overlay.h has the layout.
//
// A command stages a change for the next epoch, commits it with one store into knobs.epoch, and
// then gives what it staged its final form. overlay_hosts.h has the hosts, overlay_nets.h the
// prefixes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/base/addr.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay_table.h"

// Visits each active entry, and expired ones that are not yet removed, in any order, without
// holding all in memory. visit returns 0, or a code at which the reading ends. 0, that code, or
// -errno with err set.
int overlay_each(const struct instance *i,
		 int (*visit)(void *ctx, const struct overlay_entry *entry), void *ctx,
		 struct err *err);
// The same as a list, sorted by prefix_compare, then kind. The caller frees ret->at. 0 or -errno
// with err set.
int overlay_read(const struct instance *i, struct overlay_entries *ret, struct err *err);
// The entries of one prefix (at most OVERLAY_KINDS), without reading the others: for live counters.
int overlay_read_one(const struct instance *i, const struct prefix *p,
		     struct overlay_entry ret[OVERLAY_KINDS], size_t *ret_n, struct err *err);
// The entries with the prefix and kind of each, which the caller has set; until 0: no such entry.
// Hosts are visited in the order of the memory that they are in, of which little is mapped at a
// time.
int overlay_read_many(const struct instance *i, struct overlay_entry *entries, size_t n,
		      struct err *err);

struct overlay_plan {
	size_t added, changed, removed; // entries by kind
	uint64_t epoch; // that overlay_commit stores; the caller may make it the next one
	uint32_t bits;  // knobs.overlay afterwards
	struct overlay_finish *finish; // work that remains after the commit
};
void overlay_plan_free(struct overlay_plan *p);
#define CLEANUP_OVERLAY_PLAN CLEANUP(overlay_plan_free)

// Writes the change (sorted by prefix_compare, then kind, no duplicates); packets do not see it
// yet. Other entries do not change. Checks the space first: a map that would overflow is
// ERR_REFUSED (-ENOSPC) with the limit, and nothing is written. The caller holds the lock.
int overlay_stage(const struct instance *i, const struct overlay_entry *change, size_t n,
		  struct overlay_plan *ret, struct err *err);
// The same for the difference to `want` (none has until 0), which becomes the whole overlay: for
// callers that do not know the entries. It reads all entries.
int overlay_stage_whole(const struct instance *i, const struct overlay_entry *want, size_t n,
			struct overlay_plan *ret, struct err *err);
// Activates all staged changes with one store, then gives them their final form.
void overlay_commit(const struct instance *i, const struct overlay_plan *plan);
// Takes back what a killed command, or a failed overlay_stage, left staged, and finishes what it
// had committed. Every writing command calls it first. The caller holds the lock.
int overlay_tidy(const struct instance *i, struct err *err);

#define OVERLAY_TABLES 6
// Entries by table: IPv4 hosts, IPv6 hosts, IPv4 prefixes, IPv6 prefixes, outgoing IPv4, IPv6.
int overlay_fill(const struct instance *i, size_t ret_n[OVERLAY_TABLES], struct err *err);
