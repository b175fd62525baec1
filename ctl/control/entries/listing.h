// SPDX-License-Identifier: GPL-2.0-only
// Visits the entries of a store in the order of their prefixes, each with its references and
// counters.
#pragma once

#include "ctl/control/entries/store.h"

// The claim of one owner to an entry.
struct entry_reference {
	const struct owner *owner;
	uint64_t until_s; // RECORD_NEVER
	size_t ref;       // in the snapshot
};

struct entry {
	struct overlay_entry kernel;            // its counters are set by entries_count
	uint64_t until_s;                       // the latest of its references
	uint64_t since_s;                       // the earliest of their owners
	VEC(struct entry_reference) references; // by origin, list, name
	size_t at;                              // where entries_at finds it again
};

// An owner that was read.
struct entry_owner {
	uint32_t number;
	struct owner owner;
	char *room; // holds its strings
};

// Are entries of this prefix and kind wanted?
typedef bool entries_wanted(const void *ctx, const struct prefix *p, uint8_t kind);

struct entries {
	struct store *store;
	entries_wanted *wanted; // set by the caller; the others are skipped. NULL: all
	const void *wanted_ctx;
	struct entry entry;                 // the present one
	size_t next;                        // reference
	VEC(struct overlay_entry) counters; // counters read ahead
	size_t counted;                     // position in these counters
	struct entry_owner **owners;
	size_t owners_n;
};

// Begins a walk through a store from store_read.
struct entries entries_of(struct store *store);
// Returns the next entry, without its counters, valid until the next call; NULL at the end.
const struct entry *entries_next(struct entries *e);
// Returns the entry with this `at` again.
const struct entry *entries_at(struct entries *e, size_t at);
// Visits the hosts of a group (store_group.c), by one reference of the entry that was returned
// last. An entry that is no group has none. Returns how many were visited.
size_t entries_hosts(struct entries *e, const struct entry_reference *reference,
		     void (*visit)(void *ctx, const struct addr *host), void *ctx);
// Reads the counters of the entry that was returned last, and of many following entries. 0 or
// -errno with err set.
int entries_count(struct entries *e, struct err *err);
// The same for entries that the caller visits next with entries_at, in this order.
#define ENTRIES_AHEAD 65536 // at most
int entries_count_at(struct entries *e, const size_t *at, size_t n, struct err *err);
void entries_free(struct entries *e);
#define CLEANUP_ENTRIES CLEANUP(entries_free)
