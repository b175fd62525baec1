// SPDX-License-Identifier: GPL-2.0-only
// Commands block, allow, unblock and unallow as data: lines of weir batch, or one command, which is
// a batch of one line. The functions are called in this order; nothing changes before batch_apply.
#pragma once

#include "ctl/base/split.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/control/entries/change.h"

struct block_url;

struct line_verb {
	const struct command *command;
	bool removes, allow;
};

struct batch_line {
	unsigned number;         // in its file; 0: a command of its own
	const struct args *args; // its options: its own, or the command's
	struct split split;
	struct args parsed;
	const struct line_verb *verb; // NULL: not known yet
	struct entry_change change;
	bool dry_run;
	size_t bad;                   // lines left out by --keep-going
	unsigned resolver_timeout_ms; // 0: default
	char by[160];
	char *own;             // its text in batch --each, where it is recorded as a command
	char *note;            // of the intent
	struct block_url *url; // list of --url; NULL: none
};

// Called for each error of a line.
typedef void batch_error(void *ctx, const struct batch_line *line, const struct err *err);

struct batch {
	struct context *ctx;
	const char *file; // "-": standard input
	bool dry_run;
	VEC(struct batch_line *) lines;
	struct guard guard;
	batch_error *say; // may be NULL
	void *say_ctx;
	size_t failed;                  // lines
	struct err first;               // the first error
	bool unguarded;                 // what must not be blocked is not known
	struct entries_changed changed; // set by batch_apply
};

void batch_free(struct batch *b);
// Adds a line without options.
struct batch_line *batch_add(struct batch *b);
void batch_fail(struct batch *b, struct batch_line *line, const struct err *err);

// line_read.c: reads options and targets; args outlives the line. Invalid items:
// overlay_report_errors. 0 or -errno with err set.
int line_read(const struct context *ctx, const struct args *args, const struct line_verb *verb,
	      struct batch_line *line, struct err *err);

// line_check.c: resolves names, all those of one resolver together, leaves out answers that must
// not be blocked, and refuses what would cut off the machine or its operator.
void batch_check(struct batch *b);
// The resolver that the options name.
#define LINE_PATH 512
struct dns_options line_resolver(const struct context *ctx, const struct batch_line *line,
				 char path[LINE_PATH]);

// batch_lines.c: parses one line, unless it is blank. Errors are reported.
void batch_read_line(struct batch *b, const char *text, size_t len, unsigned number);
// Applies the lines that have not failed so far (entries_change). 0 also if a line fails now: then
// nothing has changed.
int batch_apply(struct batch *b, struct err *err);
// The name of the file in messages.
const char *batch_shown_file(const char *file);

// line_show.c: adds the change: "blocked packets from 203.0.113.7 until 02:12 (1h) on near0; no
// change". The values go to the open object. i: names its interfaces, and sets *ret_open if one of
// them does not run Weir. NULL: names none.
void line_describe(struct text *text, const struct batch_line *line, const char *instance,
		   const struct instance *i, struct out *o, struct err *ret_open);
// Names an allow entry that overrules a new block entry.
void line_warn_overruled(const struct batch_line *line);
// A block of outgoing connections is no firewall against root: the operator learns its limits, once
// for all lines that were applied together. False: no line is such a block.
bool batch_warn_limits(const struct batch *b);
// Names one entry that still applies after a removal: ERR_REFUSED if that is a failure, else a
// warning.
int line_report_left(const struct batch_line *line, struct out *o, struct err *err);
