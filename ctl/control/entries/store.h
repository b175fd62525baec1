// SPDX-License-Identifier: GPL-2.0-only
// The store: the records of the overlay (the journal) and its entries (maps), changed together.
//
// A command loads the records of the prefixes that it touches, changes them with the functions of
// records.h, and commits: the difference between the loaded and the present records is staged in
// the maps and appended to the journal. A change therefore costs what it touches, however many
// entries exist. These operations cost more:
//
//   the whole journal   its index is missing or unfinished (after a boot, a kill); a snapshot
//   a walk of the index the records of a list or name (store_load_who), of an origin, of all (store_load_all)
//   all of both         the journal has another epoch than the maps, or the clock was set: see below
//
// Expired references are dropped when they are loaded. Each commit also checks some others in turn,
// so that few expired references remain.
//
// Order of a commit; E is knobs.epoch:
//
//    1. Revert what a killed command has staged (knobs.staging != knobs.epoch), and cut off a
//       change that it has appended for an epoch that was never reached.
//    2. List the differences: references for the journal, entries for the maps.
//    3. Check the space in the maps. Nothing has been written so far.
//    4. Delete entries that are neither wanted nor effective: no packet sees that, and it makes
//       room.
//    5. knobs.staging = E + 1.
//    6. New entries, one batch for each map: now = absent, next = wanted, epoch = E + 1. Existing
//       ones one by one: now = effective state, next = wanted or absent, epoch = E + 1.
//    7. Set the new bits of knobs.overlay: an extra look-up does no harm, a missing one would.
//    8. Append the change to the journal, with the epoch E + 1, and flush it.
//    9. knobs.epoch = E + 1: one store, and all packets on all CPUs follow. E + 2 if step 8 has
//       failed and the change is --volatile: a frame E + 1 of a killed command, which could not be
//       cut off either, must not become effective.
//   10. knobs.overlay = the bits that are needed. Delete entries that nothing refers to.
//   11. Enter the change into the index.
//   12. If the journal holds more previous references than present ones: write the present ones as
//       `overlay.new`, flush this file, rename it to `overlay`.
//
// A kill leaves:
//
//   before 5        the old state
//   in 5 to 8       the old state; staged entries, which the next command that writes reverts; perhaps a
//                   change in the journal, or half of one, ignored because the maps have not
//                   reached its epoch
//   after 9         the new state; entries and bits to delete, which the next commit does; perhaps an
//                   unfinished index, which the next command replaces
//   in 12           the new state; perhaps `overlay.new` with the same content
//
// The kernel decides, and the epochs in the journal show which frames belong to the maps. While its
// last epoch is equal to the epoch of the maps, journal and maps agree, and nothing is compared. If
// the epochs differ (the file was lost, is damaged, or is older because a --volatile command could
// not write it), all is read and compared: a record without an entry in the maps is dropped or
// shortened, and an effective entry without a record that lasts as long gets a record with a note
// about that. The commit then replaces the file: in step 8 it writes `overlay.new` with the epoch E
// + 1, and after step 10 it renames this file. A kill in between leaves both files; the new one is
// used if it has the epoch of the maps. The same is done after the wall clock was set, since all
// times change, and for files of version 1.
//
// If the file is damaged, the frames before the damage are used. Commands that write keep the file
// as `overlay.damaged` when they replace it.
//
// A packet reads the epoch, then the bits of knobs.overlay, then the entries. If the epoch has
// changed in between, the packet may have met step 10, and looks up again.
#pragma once

#include <stdbool.h>

#include "ctl/control/entries/journal_file.h"
#include "ctl/control/entries/records.h"
#include "ctl/control/guard.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay.h"

struct store {
	struct instance *instance;
	struct clock clock;
	struct records records; // the loaded ones without expired ones; the caller changes them
	struct err unsaved; // why the last commit's records are not in the file; no code: they are
	struct err damaged; // which part of the file is not used, and why; text "": all is used
	// Set by the caller: a group forms around none of these addresses (store_group.c). NULL:
	// no new group forms.
	const struct guard *guard;
	bool hurry; // set by the caller: a snapshot is left to the next commit without it
	// The other members are private to store*.c.
	int lock;
	bool to_write;
	char *path; // path of the journal
	struct journal_file journal;
	struct records_clock now;
	int64_t clock_by; // how far the clock was set since the times in the journal
	bool whole;       // all is loaded, and the commit replaces the file
	bool agree;       // the journal has the epoch of the maps
	bool gathering;   // the same prefixes are loaded twice: groups come later (store_regroup)
	struct record_list before; // what was loaded, expired ones too, as the journal has it
	VEC(uint32_t) numbers;     // numbers of records.owners in the journal, or JOURNAL_NONE
	VEC(uint32_t)
	owners; // index + 1 in records.owners of each owner of the index; 0: not loaded
	VEC(uint8_t) loaded;             // a bit for each reference of the index
	VEC(uint32_t) loaded_refs;       // numbers of the loaded references
	size_t due;                      // expired references that store_load_expired has found
	VEC(uint64_t) who;               // lists and names of store_load_who, sorted
	struct store_steps *steps;       // what store_next has put aside; NULL: nothing
	struct store_snapshot *snapshot; // of store_read
};

// For listing.h: reads all references at one moment, under the shared lock, which is released at
// once. Owners are read from the journal later; others do not change them, since they append to the
// journal or replace it. A million references take 32 MB.
int store_read(const char *name, struct store **ret, struct err *err);

// The state of the journal, without a lock: another one after each change. 0 or -errno; no journal:
// -ENOENT.
int store_stamp(const char *name, struct journal_stamp *ret);
// For questions about few prefixes: loads nothing, and only store_load_covering may be called. Each
// call holds the shared lock while it reads, and forgets what was loaded before.
int store_peek(const char *name, struct store **ret, struct err *err);
// Loads the records of the prefixes and of all prefixes that contain them.
int store_load_covering(struct store *b, const struct prefix *prefixes, size_t n, struct err *err);
void store_free(struct store *b);
#define CLEANUP_STORE CLEANUP(store_cleanup)
void store_cleanup(struct store **b);

// Expiry of all references.
struct store_expiry {
	size_t due;       // have expired
	uint32_t first;   // slot of the first due one in the index, for store_load_expired
	uint64_t next_s;  // when the next one expires; RECORD_NEVER: never
	uint64_t wall_ms; // now
};
// Reads the whole index under the shared lock: a million references take some milliseconds.
int store_expiry(const char *name, struct store_expiry *ret, struct err *err);

// Before an instance is removed: completes or discards what a killed command has left in the state
// folder, writes a snapshot of the journal, and leaves no index. A snapshot that cannot be written
// is no failure: the journal has the same content. The caller holds the lock.
int store_part(const struct instance *i, struct err *err);

// Counts the references in the file of an instance without maps; no file: 0. Returns 0; -EBADMSG if
// the file is damaged, or another -errno.
int store_count(const char *instance, size_t *ret);

// A reference of store_read. The references are sorted by prefix, then kind, without expired ones.
struct store_ref {
	uint8_t bytes[16]; // of the address
	uint64_t until_s;
	uint32_t owner; // for store_owner
	uint8_t family, len, kind;
	bool grouped; // its owner has a group: a member or a group (store_group.c)
};
struct prefix store_ref_prefix(const struct store_ref *r);
bool store_ref_is_member(const struct store_ref *r);
struct store_snapshot {
	struct store_ref *refs;
	size_t n;
	struct journal_owner *owners; // NULL: the owners of the records
};
// Copies an owner of store_read; its strings are in *ret_room, which the caller frees. 0 or -errno.
int store_owner(struct store *b, uint32_t owner, struct owner *ret, char **ret_room);

// Reads the entry in the maps as it is now. False: no entry is effective.
bool store_entry(const struct store *b, const struct prefix *p, uint8_t kind,
		 struct overlay_entry *ret);
