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

struct book {
	struct instance *instance;
	struct clock clock;
	struct records records;   // without what has expired
	struct overlay_rows rows; // what the kernel has; not kept up to date by changes
	int lock;
	char *path; // of the file
	struct err
		unsaved; // what kept the last commit's records from the file; no code: nothing did
};

// Opens instance and book for changing, under the lock. `command` names us to those who wait.
int book_open(const char *name, const char *command, struct book **ret, struct err *err);
// For an instance that the caller holds already, with the lock; both are taken over by the book.
int book_open_with(struct instance *instance, int lock, struct book **ret, struct err *err);
// For reading, under the shared lock, which is given back at once.
int book_read(const char *name, struct book **ret, struct err *err);
void book_free(struct book *b);
#define CLEANUP_BOOK CLEANUP(book_cleanup)
void book_cleanup(struct book **b);

// Makes the records true. `fleeting_ok`: a state folder that cannot be written is no reason to refuse;
// b->unsaved tells then.
// 0; or -errno with err set, and packets, maps and file are as before.
int book_commit(struct book *b, bool fleeting_ok, struct overlay_plan *ret, struct err *err);

// Gives a file whose command was killed between the maps' commit and its renaming its place. The caller holds
// the lock.
int book_settle(const struct instance *i, struct err *err);

// Reads the file of a former life into a fresh instance: what had expired and what was fleeting is left
// out. No file: 0. The caller commits.
int book_restore(struct book *b, size_t *ret_n, struct err *err);

// How many claims the file of an instance without maps holds; no file: 0. 0 or -errno.
int book_count(const char *instance, size_t *ret);

// The kernel's row for an entry; NULL when it has none.
const struct overlay_row *book_row(const struct book *b, const struct prefix *p, uint8_t kind);
