// SPDX-License-Identifier: GPL-2.0-only
// The journal as a file: opened with its index, appended to, replaced by a snapshot.
#pragma once

#include "ctl/base/text.h"
#include "ctl/control/entries/journal.h"
#include "ctl/control/entries/journal_index.h"

struct journal_file {
	int fd; // -1: there is no file
	char *path, *index_path;
	struct journal_index *index; // index of all changes up to `end`
	size_t end;        // end of the last effective change: the next one is written there
	size_t size;       // of the file
	bool old;          // version 1: it cannot be appended to
	int unwritable;    // errno of open() for writing
	struct err damage; // which part is not used, and why; text "": all is used
	char *window;      // bytes read for owners
	size_t window_at, window_len;
};

// Opens the journal at `path` with its index, and makes a new index if necessary. committed:
// knobs.epoch, 0 if no maps exist. A change that did not become effective (with the epoch after
// `committed`), or that is incomplete, is not read; with to_write it is cut off, and a new index is
// saved. Lines after damage are not used, and ret->damage names the place. If the file does not
// exist the journal is empty. 0; or -errno with err set: the file cannot be read, has a newer
// version, or has version 1 and is damaged. The caller closes ret in either case.
int journal_open(const char *path, const char *index_path, uint64_t committed, bool to_write,
		 struct journal_file *ret, struct err *err);
void journal_close(struct journal_file *j);
#define CLEANUP_JOURNAL CLEANUP(journal_close)

// Reads an owner; its strings are in *ret_room, which the caller frees. The index is not needed.
int journal_read_owner(struct journal_file *j, const struct journal_owner *where, struct owner *ret,
		       char **ret_room, struct err *err);

// Appends one frame and flushes it; a failure leaves the file as it was. 0 or -errno with err set.
int journal_append(struct journal_file *j, const char *frame, size_t len, struct err *err);
// Enters the appended frame, which is effective now, into the index.
void journal_enter(struct journal_file *j, const char *frame, size_t len);

// Visits the lines of the changes from offset `from` up to `end`. Returns NULL, what is wrong, or
// what visit has returned.
const char *journal_each_since(const struct journal_file *j, size_t from, journal_visit *visit,
			       void *ctx);

// Keeps a damaged file as PATH.damaged, or PATH.damaged.2 and so on, before it is replaced.
int journal_keep_damaged(const struct journal_file *j, struct err *err);
// Removes these files. *ret_any: at least one existed.
void journal_forget_damaged(const char *path, bool dry_run, bool *ret_any);

// A snapshot is printed in parts: all owners, then all references.
struct journal_printer {
	struct text file, lines;
};
void journal_print_begin(struct journal_printer *p);
void journal_print_lines(struct journal_printer *p); // after each line: a full part is closed
char *journal_print_end(struct journal_printer *p, uint64_t epoch,
			const struct records_clock *clock, size_t *ret_len);
// Prints references and owners of the index as a snapshot of the same epoch. NULL with err set: an
// owner cannot be read.
char *journal_print_snapshot(struct journal_file *j, size_t *ret_len, struct err *err);
// Does the file hold more previous references than present ones?
bool journal_has_grown(const struct journal_file *j);
