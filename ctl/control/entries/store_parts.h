// SPDX-License-Identifier: GPL-2.0-only
// Declares what the files of the store share: loading, groups, expiry and differences.
#pragma once

#include "ctl/control/entries/store.h"

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
