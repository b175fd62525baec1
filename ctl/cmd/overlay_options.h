// SPDX-License-Identifier: GPL-2.0-only
// Options that block, allow, unblock and unallow share.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/targets.h"

// Lines of an option table.
#define OPTION_DIRECTION                                                              \
	{"to", 0, NULL, "match the destination instead of the source", false, false}, \
	{                                                                             \
		"both", 0, NULL, "match source and destination", false, false         \
	}
#define OPTION_FILE                                                                            \
	{                                                                                      \
		"file", 'f', "FILE",                                                           \
			"read a list from FILE, one item per line; '-': standard input", true, \
			false                                                                  \
	}
#define OPTION_WIDE                                                                                  \
	{                                                                                            \
		"wide", 0, NULL,                                                                     \
			"accept shorter prefixes than /8, /16 in lists, private addresses of names", \
			false, false                                                                 \
	}
#define OPTION_ORIGIN                                                                         \
	{                                                                                     \
		"origin", 0, "NAME", "act for origin NAME; other origins keep their entries", \
			false, false                                                          \
	}
#define OPTION_SYNC                                                                      \
	{                                                                                \
		"sync", 0, "NAME", "replace the list NAME with this input", false, false \
	}
#define OPTION_CHANGE                                                                        \
	{"force", 0, NULL, "override a refusal", false, false},                              \
	{                                                                                    \
		"dry-run", 0, NULL, "print what would be done, change nothing", false, false \
	}

// Reads the words and files. Every bad line is printed (or goes under "errors" with -j); with
// --keep-going the good ones are kept and *ret_bad counts the others, else that is ERR_INPUT.
// So are files without any item, unless empty_ok.
int overlay_read_targets(struct context *ctx, const struct args *args, bool keep_going,
			 bool empty_ok, struct targets *t, size_t *ret_bad, struct err *err);
// The direction that was asked for; default_kinds when none was.
int overlay_kinds(const struct args *args, bool allow, unsigned default_kinds, unsigned *ret,
		  struct err *err);
// --for: until when; RECORD_NEVER without it.
int overlay_until(const struct args *args, uint64_t now_s, uint64_t *ret, struct err *err);
// Strings of the user that go into the book: no control characters, at most 255 bytes.
int overlay_text(const struct args *args, const char *option, const char **ret, struct err *err);
