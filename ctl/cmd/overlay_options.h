// SPDX-License-Identifier: GPL-2.0-only
// Options that block, allow, unblock and unallow share.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/entries/targets.h"

// Lines of an option table. Outgoing connections, of all four verbs:
#define OPTION_OUT                                                                                \
	{.name = "out", .help = "outgoing connections to the address; a block: and its answers"}, \
	{                                                                                         \
		.name = "out-only", .help = "outgoing connections, without a look at its packets" \
	}
#define OPTION_DIRECTION                                                       \
	{.name = "to", .help = "match the destination instead of the source"}, \
	{                                                                      \
		.name = "both", .help = "match source and destination"         \
	}
#define OPTION_FILE                                                                      \
	{                                                                                \
		.name = "file", .letter = 'f', .arg = "FILE", .repeated = true,          \
		.help = "read a list from FILE, one item per line; '-': standard input", \
	}
#define OPTION_WIDE                                                                         \
	{                                                                                   \
		.name = "wide",                                                             \
		.help = "accept shorter prefixes than /8, /16 in lists, private addresses " \
			"of names",                                                         \
	}
#define OPTION_MASK                                                                      \
	{                                                                                \
		.name = "mask",                                                          \
		.help = "clear the host bits of prefixes: 192.0.2.7/24 is 192.0.2.0/24", \
	}
#define OPTION_ORIGIN                                                            \
	{                                                                        \
		.name = "origin", .arg = "NAME",                                 \
		.help = "act for origin NAME; other origins keep their entries", \
	}
#define OPTION_SYNC                                                                            \
	{                                                                                      \
		.name = "sync", .arg = "NAME", .help = "replace the list NAME with this input" \
	}
#define OPTION_CHANGE                                                                 \
	{.name = "force", .help = "override a refusal"},                              \
	{                                                                             \
		.name = "dry-run", .help = "print what would be done, change nothing" \
	}

// Reads the words and files. With keep_going the valid lines are used and *ret_bad counts the
// others; without it they are ERR_INPUT. Files without any item are ERR_INPUT unless empty_ok.
int overlay_read_targets(const struct args *args, bool keep_going, bool empty_ok, struct targets *t,
			 size_t *ret_bad, struct err *err);
// Prints every invalid line that was read (with -j: as "errors").
void overlay_report_errors(struct context *ctx, const struct targets *t);
// The kinds for --to, --both, --out and --out-only; default_kinds without these options. removes:
// all kinds of outgoing connections.
int overlay_kinds(const struct args *args, bool allow, bool removes, unsigned *ret,
		  struct err *err);
// The expiry that --for asks for; RECORD_NEVER without it.
int overlay_until(const struct args *args, uint64_t now_s, uint64_t *ret, struct err *err);
// A text of the user that the store saves: no control characters, at most 255 bytes.
int overlay_text(const struct args *args, const char *option, const char **ret, struct err *err);
// --group: 2 to 256; 0 without it.
int overlay_group(const struct args *args, bool allow, uint32_t *ret, struct err *err);
// --note in a form that the store saves (items_add_note): a note never refuses a command. The
// caller frees it.
char *overlay_note(const struct args *args);
// Adds the location of an error: "list:12", or "standard input, line 12" where the file is "-".
void overlay_add_place(struct text *t, const char *file, unsigned line);
