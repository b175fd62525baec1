// SPDX-License-Identifier: GPL-2.0-only
// Located errors: collected while a file is read, printed once, in the order of the file.
//
// Each is printed with its line and a caret under the words that are meant:
//
//   edge.weir:9:22: error: '10.0.0.5/8' has host bits set
//       9 |            drop from 10.0.0.5/8
//         |                      ^~~~~~~~~~ write 10.0.0.0/8 for the network or 10.0.0.5 for the host
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/base/mem.h"

// A text that positions point into. Owned by the diag that it was added to.
struct diag_file {
	const char *name; // as the user wrote it, relative names included
	const char *text; // whole content, NUL-terminated
	size_t len;
	unsigned index; // order of reading
	bool line;      // one line, so a place in it has no number
};

struct diag_at {
	const struct diag_file *file; // NULL: no location
	uint32_t offset, len;         // bytes in file->text; a len of 0 is drawn as one caret
};

enum diag_level { DIAG_ERROR, DIAG_WARNING };

struct diag; // the queue

struct diag *diag_new(void);
void diag_free(struct diag *d);
#define CLEANUP_DIAG CLEANUP(diag_cleanup)
void diag_cleanup(struct diag **d);

// Takes copies of name and text.
const struct diag_file *diag_add_file(struct diag *d, const char *name, const char *text,
				      size_t len);

// The same of a text of one line, which is not from a file.
const struct diag_file *diag_add_line(struct diag *d, const char *name, const char *text);

// Queue one; at most 200 of each level are kept, the rest is counted, so that a flood of warnings
// hides no error. A message with the same level, location and sentence is queued once. The hint
// (may be NULL) is printed after the caret. A message prints a second location itself, with
// diag_place.
__attribute__((format(printf, 5, 6))) void diag_add(struct diag *d, enum diag_level level,
						    struct diag_at at, const char *hint,
						    const char *fmt, ...);
#define diag_error(d, at, hint, ...)   diag_add(d, DIAG_ERROR, at, hint, __VA_ARGS__)
#define diag_warning(d, at, hint, ...) diag_add(d, DIAG_WARNING, at, hint, __VA_ARGS__)

// Removes the warnings about other files.
void diag_keep(struct diag *d, const char *file);

size_t diag_errors(const struct diag *d);

// "edge.weir:6" or, with column, "edge.weir:6:22", for messages that name a second location.
// Columns count bytes from 1, a tab is one. Returned memory belongs to d.
const char *diag_place(struct diag *d, struct diag_at at, bool column);
unsigned diag_line(struct diag_at at); // from 1

// Prints all errors, sorted by file and offset (errors without a location last), each once. In
// colour if `color`. Control characters of the text are shown as '?', tabs kept as blanks so that
// carets fit.
void diag_print(const struct diag *d, FILE *f, bool color);

// For -j: calls back for each in print order.
typedef void diag_visit(void *ctx, enum diag_level level, const char *file, unsigned line,
			unsigned column, const char *message, const char *hint);
void diag_each(const struct diag *d, diag_visit *visit, void *ctx);
