// SPDX-License-Identifier: GPL-2.0-only
// The index of the journal: which references a prefix has now, found without reading the journal.
//
// It is derived from the journal, kept in /run/weir/NAME/overlay.index and mapped: a hash from
// prefix to references, and for each owner where in the journal its line is. A writer marks it
// unfinished, changes it in place and marks it as that of the journal as it is now (inode, size,
// times). An index that is unfinished, or of another journal, boot or layout, is made anew from the
// journal: a million references take a third of a second. Where no file can be made the index is in
// memory, for one command.
//
// The caller holds the lock of the instance, shared for reading.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/records.h"

// The file that an index belongs to.
struct journal_stamp {
	uint64_t dev, ino, size, mtime_ns, ctime_ns;
};
// Of an open file. 0 or -errno.
int journal_stamp_of(int fd, struct journal_stamp *ret);

#define JOURNAL_NONE UINT32_MAX // no reference, no owner

struct journal_ref {
	uint8_t bytes[16]; // of the address
	uint64_t until_s;
	uint32_t owner;
	uint32_t next;  // of the same hash, or free
	uint8_t family; // 4 or 6; 0: free
	uint8_t len, kind;
	bool staged; // by journal_index_stage
	uint8_t unused[4];
};

struct journal_owner {
	uint64_t at;    // offset of its line
	uint64_t who;   // of its list and name: journal_who
	uint32_t bytes; // length of its line
	uint32_t refs;  // references that name it
	uint32_t group; // of it (records_group.h)
	uint32_t unused;
};

struct journal_index {
	struct journal_index_head *head;
	uint32_t *buckets; // the first reference of each
	struct journal_ref *refs;
	struct journal_owner *owners;
	size_t size; // of the mapping
	char *path;  // NULL: in memory
	bool beside; // still under the name PATH.new
};

// The index of the journal with this stamp; -ESTALE: no such index.
int journal_index_open(const char *path, const struct journal_stamp *stamp, bool to_write,
		       struct journal_index **ret);
// An empty one with room for about that many references; it grows. path NULL: in memory.
struct journal_index *journal_index_new(const char *path, size_t refs);
// A copy that changes for itself, in memory. It shares the pages that do not change with *from,
// which must not be changed meanwhile.
struct journal_index *journal_index_copy(const struct journal_index *from);
// A copy of all of it, which stays as it is whatever becomes of *from.
struct journal_index *journal_index_keep(const struct journal_index *from);
void journal_index_free(struct journal_index *x);
#define CLEANUP_JOURNAL_INDEX CLEANUP(journal_index_cleanup)
void journal_index_cleanup(struct journal_index **x);
// Removes the file of an instance that has no journal in use.
void journal_index_remove_file(const char *path);

// A change is between these. journal_index_end: it is that of the journal with this stamp.
void journal_index_begin(struct journal_index *x);
void journal_index_end(struct journal_index *x, const struct journal_stamp *stamp);
// The epoch of the last change; clock without boot: as before.
void journal_index_set(struct journal_index *x, uint64_t epoch, const struct records_clock *clock);
// Adds the next owner, which has this number. NULL, or what is wrong; the same below.
const char *journal_index_owner(struct journal_index *x, uint32_t number, size_t at, size_t bytes,
				const struct owner *owner);
const char *journal_index_add(struct journal_index *x, const struct prefix *p, uint8_t kind,
			      uint32_t owner, uint64_t until_s);
// The same in a copy, for a reference that the journal does not have like that.
const char *journal_index_stage(struct journal_index *x, const struct prefix *p, uint8_t kind,
				uint32_t owner, uint64_t until_s);
const char *journal_index_drop(struct journal_index *x, const struct prefix *p, uint8_t kind,
			       uint32_t owner);

uint64_t journal_index_epoch(const struct journal_index *x);
const struct records_clock *journal_index_clock(const struct journal_index *x);
uint32_t journal_index_owners(const struct journal_index *x);
size_t journal_index_count(const struct journal_index *x);   // references
uint32_t journal_index_slots(const struct journal_index *x); // those and free ones
// Those whose owner has a group.
size_t journal_index_grouped(const struct journal_index *x);
// Roughly what a snapshot would take.
size_t journal_index_bytes(const struct journal_index *x);

// The references of one prefix, of all kinds: for (r = first(x, p); r != JOURNAL_NONE; r = next(x,
// p, r))
uint32_t journal_index_first(const struct journal_index *x, const struct prefix *p);
uint32_t journal_index_next(const struct journal_index *x, const struct prefix *p, uint32_t ref);
// Does any reference have a prefix of this family and length?
bool journal_index_has_length(const struct journal_index *x, uint8_t family, uint8_t len);
struct prefix journal_ref_prefix(const struct journal_ref *r);
// Equal lists and names have equal numbers; others rarely.
uint64_t journal_who(const char *list, const char *name);

// Where the next `n` slots of a walk around all of them begin; the next command continues there.
uint32_t journal_index_walk(struct journal_index *x, uint32_t n);

// Lets go of the pages of the references before this one, in a walk through all.
void journal_index_release(const struct journal_index *x, uint32_t before);
