// SPDX-License-Identifier: GPL-2.0-only
// The policies that were accepted, with everything they were made of: the last ten, each a folder below
// /var/lib/weir/NAME/accepted, and which of them is the current one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/control/environment.h"
#include "ctl/datapath/generation.h"

#define REVISIONS_KEPT 10
#define REVISION_ID    16

struct revision {
	char id[REVISION_ID]; // "7f3a"
	char *path;           // of the policy file, as it was given
	char *by;             // "root (ssh 198.51.100.9)"
	char *note;
	uint64_t at_s;   // wall clock
	bool fleeting;   // never to be accepted
	uint64_t number; // rises by one with each accepted one: the order, also within a second
};

struct revisions {
	struct revision *at; // newest first
	size_t n, cap;
};

// All accepted ones. No folder: none. 0 or -errno with err set.
int revisions_list(const char *instance, struct revisions *ret, struct err *err);
void revisions_free(struct revisions *r);
#define CLEANUP_REVISIONS CLEANUP(revisions_free)

// Writes the record of a policy that is about to be switched to; r->id and r->number are drawn here. No
// list shows it before revisions_accept; what no one accepts is removed by the next one, but for the
// record of the policy in force (in_force; "": none).
int revisions_stage(const char *instance, const char *in_force, struct revision *r,
		    const struct environment *w, struct err *err);
// The policy of this record is in force for good: accepts it if its command was cut short before that, and
// if it is not fleeting.
int revisions_recover(const char *instance, const char *id, struct err *err);
// Removes the records that nobody accepted, but for in_force.
void revisions_forget(const char *instance, const char *in_force);
// Removes all records; *ret_n: how many there were that had been accepted. dry_run: only counts.
int revisions_remove(const char *instance, bool dry_run, size_t *ret_n, struct err *err);
// Makes it the current one and removes those beyond the last ten.
int revisions_accept(const char *instance, const char *id, struct err *err);
// Id of the current one; "" when there is none.
int revisions_current(const char *instance, char ret[REVISION_ID], struct err *err);
// Is there a record of it, also of one on trial?
bool revisions_has(const char *instance, const char *id);
// The record of a revision, also of one on trial; ERR_INPUT when there is no such one.
int revisions_load(const char *instance, const char *id, struct environment *w,
		   struct revision *ret, struct err *err);
// Who and which, into a generation's own record.
void revision_sign(const struct revision *r, struct generation_about *about);
void revision_free(struct revision *r);
