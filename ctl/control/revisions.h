// SPDX-License-Identifier: GPL-2.0-only
// Revisions: the last ten accepted policies, with everything that they were made from. Of revisions
// in a row with the same files, which differ in what was fetched or looked up, the two newest are
// kept, later the newest: so what an agent applies again and again does not push out what people
// have written.
//
// /var/lib/weir/NAME/accepted/REV/ has the files of a policy as `0`, `1`, … and `index` in JSON:
// their paths and sums, the answers for names, path, author, note, time, number. `accepted/current`
// names the current revision. A folder is written beside, flushed and renamed. `index` and
// `current` end in a sum (base/sum.h); a file that has changed is refused.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/control/environment.h"
#include "ctl/datapath/generation.h"
#include "ctl/policy/resolved.h"

#define REVISIONS_KEPT 10
#define REVISION_ID    16

struct revision {
	char id[REVISION_ID]; // "7f3a"
	char *path;           // path of the policy file, as given
	char *by;             // "root (ssh 198.51.100.9)"
	char *note;
	uint64_t at_s;    // wall clock
	bool fleeting;    // never to be accepted
	uint64_t number;  // rises by one with each: the order, also within a second
	uint64_t answers; // rises by one when other answers for its names are recorded
	char *texts;      // sums of its files, those that were fetched left out
	char *sum;        // sum of only the policy file (base/sum.h); "" in a damaged record
};

struct revisions {
	struct revision *at; // newest first
	size_t n, cap;
};

// All accepted revisions. No folder: none. 0 or -errno with err set.
int revisions_list(const char *instance, struct revisions *ret, struct err *err);
void revisions_free(struct revisions *r);
#define CLEANUP_REVISIONS CLEANUP(revisions_free)

// Writes the record of a policy before the switch to it; sets r->id and r->number. No list shows it
// before revisions_accept(). Removes earlier records that were not accepted, except the record of
// the active policy (in_force; "": none).
int revisions_stage(const char *instance, const char *in_force, struct revision *r,
		    const struct environment *w, const struct resolved *resolved, struct err *err);
// The policy of this record is active without a trial: accepts it if its command was interrupted
// before that, and if it is not fleeting.
int revisions_recover(const char *instance, const char *id, struct err *err);
// Removes the records that were not accepted, except in_force.
void revisions_forget(const char *instance, const char *in_force);
// Removes all records; *ret_n: how many were accepted ones. dry_run: only counts.
int revisions_remove(const char *instance, bool dry_run, size_t *ret_n, struct err *err);
// Makes it the current one and removes those that are not kept.
int revisions_accept(const char *instance, const char *id, struct err *err);
// The id of the current one; "": none.
int revisions_current(const char *instance, char ret[REVISION_ID], struct err *err);
// The newest one before the current one whose files differ from its files: what a rollback returns
// to. ERR_REFUSED if no such revision exists.
int revisions_previous(const char *instance, char ret[REVISION_ID], struct err *err);
// Does its record exist, perhaps on trial?
bool revisions_has(const char *instance, const char *id);
// The record of a revision, perhaps on trial; ERR_INPUT if it does not exist.
int revisions_load(const char *instance, const char *id, struct environment *w,
		   struct revision *ret, struct err *err);
// The same for commands that only ask about it (environment_load_known). whole: about addresses in
// lists, too.
int revisions_load_known(const char *instance, const char *id, bool whole, struct environment *w,
			 struct revision *ret, struct err *err);
// The same without its files: only the names.
int revisions_load_names(const char *instance, const char *id, struct environment *w,
			 struct revision *ret, struct err *err);
// Can it be loaded, files included? 0 or -errno with err set.
int revisions_check(const char *instance, const char *id, struct err *err);
// The same where the files were whole the last time, at most an hour ago, and have not been written
// since then, which /run/weir/NAME/record keeps: then they are not read.
int revisions_check_changed(const char *instance, const char *id, struct err *err);
// Records other answers for the names of the same revision, in one replacement; raises r->answers.
int revisions_save_names(const char *instance, struct revision *r, const struct environment *w,
			 struct err *err);
// Copies author and id into the description of a generation.
void revision_sign(const struct revision *r, struct generation_about *about);
void revision_free(struct revision *r);
