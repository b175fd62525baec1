// SPDX-License-Identifier: GPL-2.0-only
// Changes entries without an intent of the user: by new answers of names, by expiry, at attach.
#pragma once

#include "ctl/control/entries/records.h"
#include "ctl/datapath/instance.h"

// Records that a function changes: those of host names outside of lists, in any origin, and those
// of prefixes.
struct entries_edit {
	const char *instance;
	const char *command; // printed by others that wait for the lock
	const char *const *names;
	size_t names_n;
	const struct prefix *prefixes;
	size_t prefixes_n;
	// Returns how many references it has changed.
	size_t (*edit)(void *ctx, struct records *r, uint64_t now_s);
	void *ctx;
};
// Takes the lock, calls `edit`, and commits if it has changed a reference. 0 or -errno with err
// set.
int entries_edit(const struct entries_edit *e, size_t *ret_changed, struct err *err);

// Removes expired references among n slots of the index (store_expiry), without a snapshot of the
// journal, which may take a second; *ret_removed counts them. 0 or -errno with err set.
int entries_expire(const char *instance, const char *command, uint32_t from, uint32_t n,
		   size_t *ret_removed, struct err *err);

// Fills a fresh instance from the file of the removed one. The caller holds the lock. *ret_n
// references; *ret_damaged: which part of the file is not used, text "": all is. 0 or -errno with
// err set.
int entries_restore(struct instance *i, size_t *ret_n, struct err *ret_damaged, struct err *err);
