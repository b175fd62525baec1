// SPDX-License-Identifier: GPL-2.0-only
// The commands of a batch: read line by line, checked without a change, then recorded together.
#pragma once

#include "ctl/base/split.h"
#include "ctl/cmd/blocking.h"
#include "ctl/cmd/unblocking.h"

// Commands of a line.
struct batch_verb {
	const struct command *command;
	bool removes, allow;
};

struct batch_line {
	unsigned number;
	struct split split;
	struct args args;
	const struct batch_verb *verb;
	struct blocking blocking;     // if it adds
	struct unblocking unblocking; // if it removes
	bool failed;
};

// Told about each error of a line.
typedef void batch_error(void *ctx, const struct batch_line *line, const struct err *err);

struct batch {
	struct context *ctx;
	const char *file; // "-": standard input
	bool dry_run;
	VEC(struct batch_line *) lines;
	struct guard guard;
	batch_error *say;
	void *say_ctx;
	size_t failed;    // lines
	struct err first; // the first error
	bool unguarded;   // what must not be blocked is not known
};

void batch_free(struct batch *b);
// Reads one line, unless it is blank. Errors of lines are reported, here and below.
void batch_read_line(struct batch *b, const char *line, size_t len, unsigned number);
// Resolves names, and refuses what must not be blocked.
void batch_check(struct batch *b);
// Opens the store, records the lines that have not failed so far, and commits them with one epoch.
// Returns 0 also if a line fails now: then nothing has changed. -errno with err set if no line is
// at fault. *ret_store: for reports; the lock is released.
int batch_apply(struct batch *b, struct store **ret_store, struct err *err);
// Adds the result of a line; its values go to the open object.
void batch_describe(struct text *text, const struct batch_line *line, const struct store *store,
		    struct out *o);
// The name of the file in messages.
const char *batch_shown_file(const char *file);
