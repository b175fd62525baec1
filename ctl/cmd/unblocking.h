// SPDX-License-Identifier: GPL-2.0-only
// One command unblock or unallow as data, for the command itself and for the lines of weir batch.
// The functions are called in this order; nothing takes effect before the store is committed.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/control/targets.h"

// The references to remove.
enum scope {
	SCOPE_TARGETS,   // what was named
	SCOPE_LIST,      // all of --sync NAME
	SCOPE_ORIGIN,    // all of --origin NAME
	SCOPE_EVERYBODY, // --all
};

// A prefix that was meant to be free, and the reference that still covers it.
struct unblocking_left {
	struct prefix meant;
	struct reference by;
	struct owner owner; // copies of its strings
	bool failure;       // the user expects otherwise
};

struct unblocking {
	struct targets targets;
	struct intent intent;
	enum scope scope;
	bool dry_run;
	bool fleeting; // also where it cannot be saved
	size_t removed;
	VEC(struct unblocking_left) left;
};

void unblocking_free(struct unblocking *r);
// Options and targets; args outlives *ret, which is zero. Invalid lines: overlay_report_errors.
int unblocking_read(const struct args *args, bool allow, struct unblocking *ret, struct err *err);
// Loads and changes the records; collects entries that remain. 0 or -errno with err set.
int unblocking_record(struct unblocking *r, struct store *store, struct err *err);
// Adds "unblocked 203.0.113.7 of origin ids". The values go to the open object.
void unblocking_describe(struct text *line, const struct unblocking *r, struct out *o);
// Names one entry that still applies: ERR_REFUSED if that is a failure, else a warning.
int unblocking_report_left(const struct unblocking *r, struct out *o, struct err *err);
