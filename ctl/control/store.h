// SPDX-License-Identifier: GPL-2.0-only
// The overlay of an instance as one thing: who holds what (the file), and what is in force (the maps).
//
// The kernel's commit decides. The file is written beside the old one first, then the maps change with
// one store, then the file takes its place; it carries the epoch of the maps it belongs to, so that
// after a kill in between the next command knows which file is the true one.
#pragma once

#include <stdbool.h>

#include "ctl/control/records.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay.h"

struct store {
	struct instance *instance;
	struct clock clock;
	struct records records;      // without what has expired
	struct overlay_entries rows; // what the kernel has; not kept up to date by changes
	int lock;
	char *path; // of the file
	struct err
		unsaved; // what kept the last commit's records from the file; no code: nothing did
};

// Opens instance and book for changing, under the lock. `command` names us to those who wait.
int store_open(const char *name, const char *command, struct store **ret, struct err *err);
// For an instance that the caller holds already, with the lock; both are taken over by the book.
int store_open_with(struct instance *instance, int lock, struct store **ret, struct err *err);
// For reading, under the shared lock, which is given back at once.
int store_read(const char *name, struct store **ret, struct err *err);
void store_free(struct store *b);
#define CLEANUP_STORE CLEANUP(store_cleanup)
void store_cleanup(struct store **b);

// Makes the records true. `fleeting_ok`: a state folder that cannot be written is no reason to refuse;
// b->unsaved tells then.
// 0; or -errno with err set, and packets, maps and file are as before.
int store_commit(struct store *b, bool fleeting_ok, struct overlay_plan *ret, struct err *err);

// Gives a file whose command was killed between the maps' commit and its renaming its place. The caller holds
// the lock.
int store_recover(const struct instance *i, struct err *err);

// Reads the file of a former life into a fresh instance: what had expired and what was fleeting is left
// out. No file: 0. The caller commits.
int store_restore(struct store *b, size_t *ret_n, struct err *err);

// How many claims the file of an instance without maps holds; no file: 0. 0 or -errno.
int store_count(const char *instance, size_t *ret);

// The kernel's row for an entry; NULL when it has none.
const struct overlay_entry *store_entry(const struct store *b, const struct prefix *p,
					uint8_t kind);
