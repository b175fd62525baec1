// SPDX-License-Identifier: GPL-2.0-only
// The entries of a store one after another, in the order of their prefixes: each with its
// references and what it has counted.
#pragma once

#include "ctl/control/store.h"

// The claim of one owner to an entry.
struct entry_reference {
	const struct owner *owner;
	uint64_t until_s; // RECORD_NEVER
	size_t ref;       // in the snapshot
};

struct entry {
	struct prefix prefix;
	uint8_t kind;     // enum overlay_kind
	uint64_t until_s; // the latest of its references
	uint64_t since_s; // the earliest of their owners
	uint64_t packets, bytes;
	uint64_t seen;                          // jiffies64 of the last packet; 0: none
	VEC(struct entry_reference) references; // by origin, list, name
	size_t at;                              // where entries_at finds it again
};

// An owner that was read.
struct entry_owner {
	uint32_t number;
	struct owner owner;
	char *room; // of its strings
};

// Whether entries of this prefix and kind are wanted.
typedef bool entries_wanted(const void *ctx, const struct prefix *p, uint8_t kind);

struct entries {
	struct store *store;
	entries_wanted *wanted; // set by the caller; the others are skipped. NULL: all
	const void *wanted_ctx;
	struct entry entry;                 // the present one
	size_t next;                        // reference
	VEC(struct overlay_entry) counters; // of entries that are due soon
	size_t counted;                     // of these, the one that is due next
	struct entry_owner **owners;
	size_t owners_n;
};

// Of a store from store_read.
struct entries entries_of(struct store *store);
// The next entry, without its counters, valid until the next call; NULL at the end.
const struct entry *entries_next(struct entries *e);
// The entry with this `at` once more.
const struct entry *entries_at(struct entries *e, size_t at);
// The hosts of a group (records_group.h), by one of the references of the entry that was returned
// last: none if it is no group. How many.
size_t entries_hosts(struct entries *e, const struct entry_reference *reference,
		     void (*visit)(void *ctx, const struct addr *host), void *ctx);
// Reads the counters of the entry that was returned last, and of many of the following ones with
// them. 0 or -errno with err set.
int entries_count(struct entries *e, struct err *err);
// The same for entries that the caller visits next with entries_at, in this order.
#define ENTRIES_AHEAD 65536 // at most
int entries_count_at(struct entries *e, const size_t *at, size_t n, struct err *err);
void entries_free(struct entries *e);
#define CLEANUP_ENTRIES CLEANUP(entries_free)
