// SPDX-License-Identifier: GPL-2.0-only
// The journal as a file: opened with its index, appended to, replaced by a snapshot.
#pragma once

#include "ctl/base/text.h"
#include "ctl/control/journal.h"
#include "ctl/control/journal_index.h"

struct journal_file {
	int fd; // -1: there is no file
	char *path, *index_path;
	struct journal_index *index; // of all changes up to `end`
	size_t end;                  // of the last change in force: the next one goes there
	size_t size;                 // of the file
	bool old;                    // version 1: it cannot be appended to
	int unwritable;              // errno of opening it for writing
	struct err damage;           // what of it is not used, and why; text "": nothing
	char *window;                // bytes read for owners
	size_t window_at, window_len;
};

// Opens the journal at `path` with the index that belongs to it, made anew if need be. committed:
// knobs.epoch, 0 when no maps exist. A change that did not come into force (of the epoch after
// `committed`), and half of one, are not read; with to_write they are cut off, and a new index is
// saved. What follows damage is not used, and ret->damage names the place. No file: an empty
// journal. 0; or -errno with err set: it cannot be read, or version 1 is damaged, or a newer
// version. The caller closes ret in either case.
int journal_open(const char *path, const char *index_path, uint64_t committed, bool to_write,
		 struct journal_file *ret, struct err *err);
void journal_close(struct journal_file *j);
#define CLEANUP_JOURNAL CLEANUP(journal_close)

// An owner; its strings are in *ret_room, which the caller frees. The index is not needed.
int journal_read_owner(struct journal_file *j, const struct journal_owner *where, struct owner *ret,
		       char **ret_room, struct err *err);

// Appends one frame and flushes it; a failure leaves the file as it was. 0 or -errno with err set.
int journal_append(struct journal_file *j, const char *frame, size_t len, struct err *err);
// The frame that was appended is in force now: enters it into the index.
void journal_enter(struct journal_file *j, const char *frame, size_t len);

// Visits the lines of the changes from offset `from` up to `end`. NULL; or what is wrong, or what
// visit has returned.
const char *journal_each_since(const struct journal_file *j, size_t from, journal_visit *visit,
			       void *ctx);

// Keeps a damaged file as PATH.damaged, or PATH.damaged.2 and so on, before it is replaced.
int journal_keep_damaged(const struct journal_file *j, struct err *err);
// Removes those files. *ret_any: there were some.
void journal_forget_damaged(const char *path, bool dry_run, bool *ret_any);

// A snapshot is printed in parts: all owners, then all references.
struct journal_printer {
	struct text file, lines;
};
void journal_print_begin(struct journal_printer *p);
void journal_print_lines(struct journal_printer *p); // after each line: a full part is closed
char *journal_print_end(struct journal_printer *p, uint64_t epoch,
			const struct records_clock *clock, size_t *ret_len);
// The references and owners of the index as a snapshot of the same epoch. NULL with err set: an
// owner cannot be read.
char *journal_print_snapshot(struct journal_file *j, size_t *ret_len, struct err *err);
// Does the file hold more of the past than of the present?
bool journal_has_grown(const struct journal_file *j);
