// SPDX-License-Identifier: GPL-2.0-only
// Declares what only this room uses: opening, loading, drafts, commits, and what the files of the
// store share.
#pragma once

#include "ctl/control/entries/store.h"

// Opens instance and store for changes, under the lock. Commands that wait for the lock print
// `command`. No record is loaded, unless all have to be compared.
int store_open(const char *name, const char *command, struct store **ret, struct err *err);
// Opens the store of an instance that the caller has opened under the lock. The store takes over
// both, unless it fails.
int store_open_with(struct instance *instance, int lock, struct store **ret, struct err *err);
// Loads records of an open store, of all kinds and owners. Records that are loaded already keep the
// caller's changes. 0 or -errno with err set.
int store_load(struct store *b, const struct prefix *prefixes, size_t n, struct err *err);
// Loads the records of the prefixes that these lists and names refer to (journal_who), in any
// origin.
int store_load_who(struct store *b, const uint64_t *who, size_t n, struct err *err);
int store_load_all(struct store *b, struct err *err);
// Loads the prefixes of expired references among n slots of the index. A commit removes these
// references.
int store_load_expired(struct store *b, uint32_t from, uint32_t n, struct err *err);

// store_draft.c: prepares a large change without the lock. A draft has the records of this moment;
// the caller loads and changes them as in an open store. store_adopt gives the differences to an
// open store that has nothing loaded. So under the lock a change costs only its differences. 0 or
// -errno with err set; it fails also if all records have to be compared with the maps, which needs
// the lock.
int store_draft(const char *name, struct store **ret, struct err *err);
// Removes from the draft all records of prefixes that do not differ.
void store_reduce(struct store *draft);
// Returns false, with nothing loaded, if others have changed records that the draft concerns. In
// either case the draft is only to be freed.
bool store_adopt(struct store *b, struct store *draft);

// Decides about the groups that the loaded records concern. store_commit does so, too; callers that
// look at the records before the commit call this function.
int store_regroup(struct store *b, struct err *err);
// Makes the records effective. `fleeting_ok`: continue if the state folder cannot be written, and
// set b->unsaved. Returns 0; or -errno with err set, and packets, maps and file are as before.
// Without a difference nothing is done. After the commit the records are only for reading.
int store_commit(struct store *b, bool fleeting_ok, struct overlay_plan *ret, struct err *err);
// Releases the lock for other commands. Afterwards the store is only for reading.
void store_unlock(struct store *b);
// Separates changes that become one commit. The next change loads what it needs, with the changes
// so far, and does not cost more because of them. store_gather ends this: the records are then the
// records of all changes, as store_commit needs them. store_commit calls it, too.
void store_next(struct store *b);
int store_gather(struct store *b, struct err *err);
// Begins the next change of an open store, under the same lock: forgets what is loaded and changed,
// and reads the clocks. Many commands can thus be applied one after the other, each with a commit
// of its own that succeeds or fails as a whole.
int store_begin(struct store *b, struct err *err);

// Loads the records in the file of a removed instance for a fresh one, without expired and fleeting
// records. *ret_n references; *ret_any: the file exists, so the caller commits.
int store_restore(struct store *b, size_t *ret_n, bool *ret_any, struct err *err);

// Forgets everything that was loaded.
void store_forget_loaded(struct store *b);
void store_begin_loading(struct store *b);
// Forgets the records, but keeps the owners and their numbers in the index.
void store_unload(struct store *b);
// Marks the references to the prefix as loaded.
void store_mark_loaded(struct store *b, const struct prefix *p);
// Notes the number that the owner has in the index.
void store_know_owner(struct store *b, uint32_t number, uint32_t owner);
// Is the prefix in one of the sorted nets?
bool store_nets_have(const struct prefix_list *nets, const struct prefix *p);
// Loads all records inside of the sorted nets.
int store_load_inside(struct store *b, const struct prefix_list *nets, struct err *err);

// Discards what store_next has put aside.
void store_forget_steps(struct store *b);
void store_snapshot_free(struct store_snapshot *s);
// Takes the shared lock and opens the journal, for a reader. store_end_reading closes the journal
// and releases the lock.
int store_begin_reading(struct store *b, struct err *err);
void store_end_reading(struct store *b);

// Finds which of several references have expired: notes each, then reads the maps, then answers for
// each in the same order.
struct store_ends {
	VEC(struct overlay_entry) asked;
	size_t next;
};
void store_ends_note(const struct store *b, struct store_ends *ends, const struct prefix *p,
		     uint8_t kind, uint64_t until_s);
int store_ends_read(const struct store *b, struct store_ends *ends, struct err *err);
bool store_ends_expired(const struct store *b, struct store_ends *ends, uint64_t until_s);
void store_ends_free(struct store_ends *ends);
#define CLEANUP_STORE_ENDS CLEANUP(store_ends_free)

// Visits the differences between the loaded records and the present ones, in order. old NULL: a new
// record; new NULL: a removed one.
typedef void store_difference(void *ctx, const struct reference *old, const struct reference *new);
void store_each_difference(const struct store *b, store_difference *visit, void *ctx);
// Is there a difference between what was loaded and the records?
bool store_differs(const struct store *b);
// Prints the difference between the loaded records and the present ones, by the owners' numbers in
// the journal; new owners are numbered. The caller frees the text. *ret_len 0: no difference.
char *store_print_change(struct store *b, size_t *ret_len);
// Prints the records as a whole journal of that epoch.
char *store_print_all(struct store *b, uint64_t epoch, size_t *ret_len);
// The entries that differ, for overlay_stage; or all entries that are wanted, for
// overlay_stage_whole.
struct overlay_entry *store_changed_entries(const struct store *b, size_t *ret_n);
struct overlay_entry *store_wanted_entries(const struct store *b, size_t *ret_n);
