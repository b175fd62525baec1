// SPDX-License-Identifier: GPL-2.0-only
// The journal of the overlay: the file /var/lib/weir/NAME/overlay as frames. Pure: memory and text.
//
//   weir-overlay 2
//   part bytes 4062                                          a snapshot: parts, and the change that ends them
//   holder 0 since 1790000000 origin "" list "" name "" note "abuse 4711" by "root"
//   block from 203.0.113.7 by 0 until never
//   …
//   sum 3c5a8f0e11d2b496
//   change bytes 0 epoch 17 wall 1790000400 up 86400 boot 8f0c2b6e-0d0c-4a53-9d0e-0a6ad6a3f3c1
//   sum 0b7f2a93c8e15d64
//   change bytes 131 epoch 18                                a command: what it has changed, nothing else
//   holder 1 since 1790000500 origin "ids" list "" name "" note "" by "root"
//   block from 203.0.113.9 by 1 until 1790001100
//   sum …
//   change bytes 36 epoch 19
//   remove block from 203.0.113.7 by 0
//   sum …
//
// A frame consists of its head, as many bytes of lines as the head announces, and the checksum of
// both. A change is one frame, so it is read as a whole or not at all; `epoch` is
// the knobs.epoch that makes it effective. All times in the file refer to one clock, which is in
// the head after which it applies. A snapshot has many small frames, so that damage costs the
// frames that follow, and little of what precedes the damage. A snapshot ends with a change;
// without a change it was cut off.
//
// The format is text, since reading a million references takes a third of a second, and an operator
// can look at the file. `weir list --plain` prints the form to read.
//
// Further forms of lines:
//
//   holder 1 since 1790000300 fleeting origin "fail2ban" list "" name "" note "" by "root"
//   holder 2 since 1790000400 group 5 origin "sshd" list "" name "" note "" by "root"
//
// Owners are numbered in the order of the file, and precede the lines that name them. A reference
// is known by prefix, kind and owner: the same once more has a new end. Strings are quoted with \"
// \\ \xHH.
//
// Files of version 1 had the lines of a snapshot between the head "weir-overlay 1 epoch 17" and
// "end N".
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/control/entries/records.h"

#define JOURNAL_HEAD "weir-overlay 2\n"

#define JOURNAL_OWNERS_MAX (UINT32_MAX - 1)

struct journal_line {
	enum {
		JOURNAL_OWNER,
		JOURNAL_ADD,
		JOURNAL_REMOVE,
	} what;
	struct reference reference; // only its owner: JOURNAL_OWNER; no end: JOURNAL_REMOVE
	struct owner owner;         // only JOURNAL_OWNER; its strings are in the caller's `spare`
};

// Parses a line without its newline. spare has room for `len` bytes, or is NULL where owners are
// not expected. Returns NULL, or what is wrong.
const char *journal_line_parse(const char *line, size_t len, char *spare, struct journal_line *ret);

void journal_print_owner(struct text *t, uint32_t number, const struct owner *owner);
// Prints a reference whose owner has this number in the journal.
void journal_print_add(struct text *t, const struct reference *r, uint32_t number);
void journal_print_remove(struct text *t, const struct reference *r, uint32_t number);

// Prints the clock in the head of a frame: " wall 1790000400 up 86400 boot 8f0c2b6e-…"; nothing if
// the clock is not known.
void journal_print_clock(struct text *t, const struct records_clock *clock);
// Parses the rest of a head, from *at. The clock may be absent: then *ret is not changed. Returns
// NULL, or what is wrong.
const char *journal_parse_clock(const char **at, const char *end, struct records_clock *ret);

// A part of the file that is applied as a whole.
struct journal_frame {
	size_t at, end;             // offsets of its first byte and of the next frame
	size_t lines, lines_end;    // offsets of its lines
	bool part;                  // a part of a snapshot, and more follows; else epoch is set
	uint64_t epoch;             // effective from this knobs.epoch on
	struct records_clock clock; // boot "": as in the previous frame
};

enum journal_found {
	JOURNAL_FRAME,
	JOURNAL_END,
	JOURNAL_CUT,     // the text ends inside of a frame
	JOURNAL_DAMAGED, // it is not a frame, or its checksum differs
};

// Finds the frame at offset `at`. *why is set if it is damaged.
enum journal_found journal_find(const char *text, size_t len, size_t at, struct journal_frame *ret,
				const char **why);
// The same for a text that this process has just printed: the checksum is not compared.
enum journal_found journal_find_own(const char *text, size_t len, size_t at,
				    struct journal_frame *ret, const char **why);

// Visits the lines of the frame in order, with the offset and length of each. visit returns NULL,
// or what is wrong with the line. Returns NULL, or what was wrong.
typedef const char *journal_visit(void *ctx, const struct journal_line *line, size_t at,
				  size_t len);
const char *journal_lines(const char *text, const struct journal_frame *f, journal_visit *visit,
			  void *ctx);

// Adds a frame around these lines. journal_print_part adds a part of a snapshot.
void journal_print_part(struct text *t, const char *lines, size_t len);
void journal_print_change(struct text *t, const char *lines, size_t len, uint64_t epoch,
			  const struct records_clock *clock);

// Does the file have version 1? Then it is read as one frame, or refused as a whole (-EINVAL,
// ERR_INPUT with the line).
bool journal_is_old(const char *text, size_t len);
int journal_find_old(const char *text, size_t len, struct journal_frame *ret, journal_visit *visit,
		     void *ctx, struct err *err);
// Has a newer Weir written the file, with a later version?
bool journal_is_newer(const char *text, size_t len);
