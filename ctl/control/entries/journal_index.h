// SPDX-License-Identifier: GPL-2.0-only
// The index of the journal: which references a prefix has now, found without reading the journal.
//
// It is derived from the journal, kept in /run/weir/NAME/overlay.index and mapped: a hash from
// prefix to references, and for each owner the offset of its line in the journal. A writer marks
// the index as unfinished, changes it in place, and notes the present state of the journal (inode,
// size, times). An index that is unfinished, or that belongs to another journal, boot or layout, is
// replaced by a new one: a million references take a third of a second. If no file can be made, the
// index is in memory, for one command.
//
// The caller holds the lock of the instance, shared for reading.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/entries/records.h"

// The state of the journal that an index belongs to.
struct journal_stamp {
	uint64_t dev, ino, size, mtime_ns, ctime_ns;
};
// Returns the stamp of an open file. 0 or -errno.
int journal_stamp_of(int fd, struct journal_stamp *ret);

#define JOURNAL_NONE UINT32_MAX // no reference, no owner

struct journal_ref {
	uint8_t bytes[16]; // of the address
	uint64_t until_s;
	uint32_t owner;
	uint32_t next;  // next reference with the same hash, or next free one
	uint8_t family; // 4 or 6; 0: free
	uint8_t len, kind;
	bool staged; // added by journal_index_stage
	uint8_t unused[4];
};

struct journal_owner {
	uint64_t at;    // offset of its line
	uint64_t who;   // hash of its list and name: journal_who
	uint32_t bytes; // length of its line
	uint32_t refs;  // references that name it
	uint32_t group; // its group (store_group.c)
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
// Makes an empty index with room for about that many references; the index grows. path NULL: in
// memory.
struct journal_index *journal_index_new(const char *path, size_t refs);
// Makes a private copy in memory. The copy shares unchanged pages with *from, which must not be
// changed while the copy exists.
struct journal_index *journal_index_copy(const struct journal_index *from);
// Copies the whole index. Later changes of *from do not affect the copy.
struct journal_index *journal_index_keep(const struct journal_index *from);
void journal_index_free(struct journal_index *x);
#define CLEANUP_JOURNAL_INDEX CLEANUP(journal_index_cleanup)
void journal_index_cleanup(struct journal_index **x);
// Removes the file of an instance that has no journal in use.
void journal_index_remove_file(const char *path);

// A change is made between these two calls. journal_index_end marks the index as complete for the
// journal with this stamp.
void journal_index_begin(struct journal_index *x);
void journal_index_end(struct journal_index *x, const struct journal_stamp *stamp);
// Sets the epoch of the last change, and the clock if it has a boot.
void journal_index_set(struct journal_index *x, uint64_t epoch, const struct records_clock *clock);
// Adds the next owner, which has this number. Returns NULL, or what is wrong, as do the functions
// below.
const char *journal_index_owner(struct journal_index *x, uint32_t number, size_t at, size_t bytes,
				const struct owner *owner);
// The owner of a reference is its number, here and below.
const char *journal_index_add(struct journal_index *x, const struct reference *r);
// The same in a copy, for a reference that differs from the journal.
const char *journal_index_stage(struct journal_index *x, const struct reference *r);
const char *journal_index_drop(struct journal_index *x, const struct reference *r);

uint64_t journal_index_epoch(const struct journal_index *x);
const struct records_clock *journal_index_clock(const struct journal_index *x);
uint32_t journal_index_owners(const struct journal_index *x);
size_t journal_index_count(const struct journal_index *x);   // references
uint32_t journal_index_slots(const struct journal_index *x); // references and free slots
// Returns the number of references whose owner has a group.
size_t journal_index_grouped(const struct journal_index *x);
// Returns the size of a snapshot in bytes, roughly.
size_t journal_index_bytes(const struct journal_index *x);

// The references of one prefix, of all kinds: for (r = first(x, p); r != JOURNAL_NONE; r = next(x,
// p, r))
uint32_t journal_index_first(const struct journal_index *x, const struct prefix *p);
uint32_t journal_index_next(const struct journal_index *x, const struct prefix *p, uint32_t ref);
// Does any reference have a prefix of this family and length?
bool journal_index_has_length(const struct journal_index *x, uint8_t family, uint8_t len);
struct prefix journal_ref_prefix(const struct journal_ref *r);
struct reference journal_ref_reference(const struct journal_ref *r);
// Returns a hash of list and name: different ones rarely have equal numbers.
uint64_t journal_who(const char *list, const char *name);

// Returns where the next `n` slots of a cyclic walk begin. The next command continues after them.
uint32_t journal_index_walk(struct journal_index *x, uint32_t n);

// Releases the pages of the references before this one, in a walk through all references.
void journal_index_release(const struct journal_index *x, uint32_t before);
