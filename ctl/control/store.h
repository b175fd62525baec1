// SPDX-License-Identifier: GPL-2.0-only
// The store: the records of the overlay (file) and its entries (maps), changed together.
//
// Order of a commit; E is knobs.epoch:
//
//    1. Revert what a killed command has staged (knobs.staging != knobs.epoch).
//    2. Read the four maps, compare with what is wanted, list the changes of each.
//    3. Check the space in all maps. Nothing has been written so far.
//    4. Delete entries that are neither wanted nor effective: no packet sees that, and it makes room.
//    5. knobs.staging = E + 1.
//    6. New entries, one batch for each map: now = absent, next = wanted, epoch = E + 1. Existing ones
//       one by one: now = effective state, next = wanted or absent, epoch = E + 1.
//    7. Set the new bits of knobs.overlay: an extra look-up does no harm, a missing one would.
//    8. Write the file as `overlay.new`, flushed, with the epoch E + 1.
//    9. knobs.epoch = E + 1: one store, and all packets on all CPUs follow.
//   10. knobs.overlay = the bits that are needed. Delete entries that nothing refers to.
//   11. Rename `overlay.new` to `overlay`, flush the folder.
//
// A kill leaves:
//
//   before 5        the old state
//   in 5 to 8       the old state; staged entries, which the next command that writes reverts; perhaps a
//                   new file, ignored because its epoch is not that of the maps
//   after 9         the new state; entries and bits to delete, which the next commit does; the new file
//                   beside the old one, taken because its epoch is that of the maps
//   after 11        the new state
//
// The kernel decides, and the epoch in the file tells which of two files belongs to the maps.
// If the file were written first, it could list entries that are not effective; if the maps were, the owners
// could be lost.
//
// A packet reads the epoch, then the bits of knobs.overlay, then the entries. If the epoch has
// changed meanwhile it may have met step 10, and asks again. A record without an entry in the maps
// is dropped. An effective entry without a record (the file was lost) gets a record with a note
// about that.
#pragma once

#include <stdbool.h>

#include "ctl/control/records.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay.h"

struct store {
	struct instance *instance;
	struct clock clock;
	struct records records;         // without expired ones
	struct overlay_entries entries; // of the kernel; changes do not update them
	int lock;
	char *path;         // of the file
	struct err unsaved; // why the last commit's records are not in the file; no code: they are
};

// Opens instance and store for changes, under the lock. `command` names us to commands that wait.
int store_open(const char *name, const char *command, struct store **ret, struct err *err);
// For an instance that the caller has opened, with the lock; the store takes over both.
int store_open_with(struct instance *instance, int lock, struct store **ret, struct err *err);
// For reading, under the shared lock, which is released at once.
int store_read(const char *name, struct store **ret, struct err *err);
void store_free(struct store *b);
#define CLEANUP_STORE CLEANUP(store_cleanup)
void store_cleanup(struct store **b);

// Puts the records into effect. `fleeting_ok`: continue if the state folder cannot be written, and set
// b->unsaved. 0; or -errno with err set, and packets, maps and file are as before.
int store_commit(struct store *b, bool fleeting_ok, struct overlay_plan *ret, struct err *err);

// Completes or discards the new file of a command that was killed before step 11. The caller holds the lock.
int store_recover(const struct instance *i, struct err *err);

// Reads the file of a removed instance into a fresh one, without expired and fleeting records. No file: 0.
// The caller commits.
int store_restore(struct store *b, size_t *ret_n, struct err *err);

// The number of references in the file of an instance without maps; no file: 0. 0 or -errno.
int store_count(const char *instance, size_t *ret);

// The entry in the maps; NULL: none.
const struct overlay_entry *store_entry(const struct store *b, const struct prefix *p,
					uint8_t kind);
