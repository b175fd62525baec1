// SPDX-License-Identifier: GPL-2.0-only
// The interface of a command, and the context it runs in.
#pragma once

#include <stdbool.h>

#include "ctl/base/err.h"
#include "ctl/cmd/args.h"
#include "ctl/cmd/out.h"
#include "ctl/net/session.h"

#ifndef WEIR_VERSION
#define WEIR_VERSION "0.1"
#endif

// State that all commands share; set by main.
struct context {
	const char *instance; // -n, "main" by default
	const char *netns;    // -N as given; NULL: not entered
	int netns_before;     // the namespace that -N has left; -1: not entered
	bool json, pretty, color;
	unsigned verbose;       // -v, -vv
	bool quiet;             // -q: no result line
	bool at_once;           // checks that need two readings some time apart are omitted
	struct session session; // found before -N entered another namespace
	bool session_here;      // the packets of the session pass the namespace we act in
	const char *by;         // the author of changes, if it is the agent; NULL: the login
	const char *line;       // the command line, stored with the lock
	struct out *out;
	char *about; // backends that were changed, for the record (changelog_line.h); owned
	enum {
		NOTED_NOTHING,
		NOTED_CHANGES, // what has changed, or nothing has
		NOTED_ALL,     // also failures
	} noted;               // what is recorded already (cmd/changing.h)
	bool of_rule;          // a command of entries changes a quick rule instead
};

// Option of commands that print tables.
#define OPTION_WIDE_TABLES                                                               \
	{                                                                                \
		.name = "wide", .help = "do not fit tables to the width of the terminal" \
	}

// Changes that a command can make, for the record of `weir changes`.
enum command_changes {
	CHANGES_NOTHING,
	CHANGES_ENTRIES,
	CHANGES_INSTANCE, // under the lock
	CHANGES_AT_ONCE,  // without the lock
};

struct command {
	const char *name;
	const char *usage;                  // "WHAT… [OPTIONS]"
	const char *summary;                // one line of `weir help`
	const char *text;                   // further paragraphs of `weir help COMMAND`, or NULL
	const struct args_option *options;  // the last one has no name; or NULL
	const struct args_foreign *foreign; // the last one has no name; or NULL
	enum command_changes changes;
	// Returns 0, or a negative errno with err set. Results are in ctx->out.
	int (*run)(struct context *ctx, const struct args *args, struct err *err);
};

// Options of all commands; the last one has no name.
extern const struct args_option global_options[];
// In the order of `weir help`; ended by NULL.
extern const struct command *const commands[];
// The replacement for a command of similar tools; NULL: not known.
const char *commands_foreign(const char *word);

extern const struct command cmd_attach, cmd_detach, cmd_restore, cmd_forget, cmd_block, cmd_unblock,
	cmd_allow, cmd_unallow, cmd_batch, cmd_refresh, cmd_list, cmd_check, cmd_apply, cmd_confirm,
	cmd_rollback, cmd_diff, cmd_show, cmd_history, cmd_explain, cmd_status, cmd_stats,
	cmd_metrics, cmd_watch, cmd_bypass, cmd_doctor, cmd_decap, cmd_run, cmd_service, cmd_drain,
	cmd_undrain, cmd_weight, cmd_backend, cmd_rule, cmd_top, cmd_page, cmd_import, cmd_changes,
	cmd_capture;
extern const struct command cmd_event_writer; // run by the agent; not in the list
