// SPDX-License-Identifier: GPL-2.0-only
// One block or allow command as data, for the command itself and for the lines of weir batch. The
// functions are called in this order. Nothing changes before blocking_record, and nothing is
// effective before the store is committed.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/control/guard.h"
#include "ctl/control/targets.h"

struct block_url;

struct blocking {
	const struct args *args;
	struct targets targets;
	struct intent intent;
	const char *verb; // "block"
	size_t bad;       // lines left out by --keep-going
	bool force, dry_run;
	unsigned resolver_timeout_ms; // 0: default
	char by[160];
	char *note;                   // note of the intent
	struct guard guard;           // for a single command; a batch has one guard for all lines
	struct records_change change; // set by blocking_record
	size_t listed;                // references of the list, set by blocking_record
	struct block_url *url;        // list of --url; NULL: none
};

void blocking_free(struct blocking *r);
// Reads options and targets; args outlives *ret, which is zero. Invalid lines:
// overlay_report_errors.
int blocking_read(const struct context *ctx, const struct args *args, bool allow,
		  struct blocking *ret, struct err *err);
// Does the command block addresses that the user has not written, by host names or --group?
bool blocking_extends(const struct blocking *r);
// Collects the addresses that must not be blocked, with the peers of all logins if the command has
// names or the like (`names`). If that fails, blocking is refused without force.
int blocking_guard(const struct context *ctx, const struct blocking *r, bool names, bool force,
		   struct guard *ret, struct err *err);
// Resolves the names, and leaves out answers that must not be blocked.
int blocking_resolve(const struct context *ctx, struct blocking *r, const struct guard *guard,
		     struct err *err);
// The same in two steps, for names that are resolved together (targets_resolve): blocking_resolver
// returns the resolver to ask, blocking_answered takes the answers.
#define BLOCKING_PATH 512
struct dns_options blocking_resolver(const struct context *ctx, const struct blocking *r,
				     char path[BLOCKING_PATH]);
int blocking_answered(struct blocking *r, const struct guard *guard, struct err *err);
// Refuses what would cut off the machine or its operator; warns about resolvers and the like.
int blocking_check(const struct blocking *r, const struct guard *guard, struct err *err);
void blocking_warn_no_forwarding(unsigned kinds);
// Opens the store of an attached instance.
int blocking_open(const struct context *ctx, const char *verb, bool dry_run, struct store **ret,
		  struct err *err);
// Changes the records; refuses a list that shrinks.
int blocking_record(struct blocking *r, struct store *store, struct err *err);
// Names an allow entry that covers a new block entry, since the block entry then has no effect.
void blocking_warn_overruled(const struct blocking *r, const struct store *b);
// Adds the change and its expiry: "blocked packets from 203.0.113.7 until 02:12 (1h)". The values
// go to the open object.
void blocking_describe(struct text *line, const struct blocking *r, const struct store *b,
		       struct out *o);
// Adds "; 5 hosts of 203.0.113.0/24 are blocked as one entry", after the commit. The values go to
// the open object.
void blocking_add_groups(struct text *line, const struct blocking *r, const struct store *b,
			 struct out *o);
// Adds "; no change".
void blocking_add_change(struct text *line, const struct blocking *r);
