// SPDX-License-Identifier: GPL-2.0-only
// What the files of the store share.
#pragma once

#include "ctl/control/store.h"

// Nothing is loaded afterwards.
void store_forget_loaded(struct store *b);
void store_begin_loading(struct store *b);
void store_snapshot_free(struct store_snapshot *s);
// Takes the shared lock and opens the journal, for a reader; and lets go of both.
int store_begin_reading(struct store *b, struct err *err);
void store_end_reading(struct store *b);

// Which of several references have expired: each is noted, then the maps are read, then each is asked about, in the
// same order.
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

// Is there a difference between what was loaded and the records?
bool store_differs(const struct store *b);
// The difference between what was loaded and the records, by number of the owners in the journal; new owners are
// numbered. The caller frees it. *ret_len 0: none.
char *store_print_change(struct store *b, size_t *ret_len);
// The records as a whole journal of that epoch.
char *store_print_all(struct store *b, uint64_t epoch, size_t *ret_len);
// The entries that differ, for overlay_stage; all of them: what is wanted, for overlay_stage_whole.
struct overlay_want *store_changed_entries(const struct store *b, size_t *ret_n);
struct overlay_want *store_wanted_entries(const struct store *b, size_t *ret_n);
