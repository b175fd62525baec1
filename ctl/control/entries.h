// SPDX-License-Identifier: GPL-2.0-only
// The entries of a store one after another, in the order of their prefixes: each with its references and what it has
// counted.
#pragma once

#include "ctl/control/store.h"

// The claim of one owner to an entry.
struct entry_reference {
	const struct owner *owner;
	uint64_t until_s; // RECORD_NEVER
};

struct entry {
	struct prefix prefix;
	uint8_t kind;     // enum overlay_kind
	uint64_t until_s; // the latest of its references
	uint64_t since_s; // the earliest of their owners
	uint64_t packets, bytes;
	uint64_t seen; // jiffies64 of the last packet; 0: none
	VEC(struct entry_reference) references;
	size_t at; // where entries_at finds it again
};

// An owner that was read.
struct entry_owner {
	uint32_t number;
	struct owner owner;
	char *room; // of its strings
};

struct entries {
	struct store *store;
	struct entry entry; // the present one
	size_t next;        // reference
	struct entry_owner **owners;
	size_t owners_n;
};

// Of a store from store_read.
struct entries entries_of(struct store *store);
// The next entry, valid until the next call; NULL at the end.
const struct entry *entries_next(struct entries *e);
// The entry with this `at`, instead of the next one.
const struct entry *entries_at(struct entries *e, size_t at);
void entries_free(struct entries *e);
#define CLEANUP_ENTRIES CLEANUP(entries_free)
