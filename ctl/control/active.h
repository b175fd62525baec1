// SPDX-License-Identifier: GPL-2.0-only
// The active policy: its record, the interfaces that it was applied to, and whether the policy file
// is its text.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/control/candidate.h"
#include "ctl/control/environment.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"

// How much of the record is loaded: all texts; or, for candidate_name(), list files only if the
// record does not have their values (control/known), with their addresses or only with names and
// locations.
enum active_part { ACTIVE_ALL, ACTIVE_KNOWN, ACTIVE_NAMES };

// Loads its files and answers into c, which is from candidate_new_replay(); then
// candidate_compile(), candidate_resolve() or candidate_name() with ret->path follows. Returns 0;
// -ENOENT without err set if no policy and no quick
// rule is active; else -errno with err set.
int active_record(const struct instance *i, enum active_part part, struct candidate *c,
		  struct generation_about *ret, struct err *err);
// Names the rules of the active policy from its record (candidate_name); the caller frees it.
// Returns 0; -ENOENT without err set if no policy is active; else -errno with err set. addresses:
// also get the addresses of its lists.
int active_rules(const struct instance *i, bool addresses, struct candidate **ret, struct err *err);
// The error of a record that does not compile.
int active_broken(const struct generation_about *about, struct err *err);

struct in_effect {
	bool trial;                    // one runs, and nothing else is filled in
	struct generation_about about; // its revision is "" without a policy, or without its record
	struct environment record;
	struct revision revision;
};

struct in_effect *in_effect_new(void);
void in_effect_cleanup(struct in_effect **e);
#define CLEANUP_IN_EFFECT CLEANUP(in_effect_cleanup)

// Reads what is active: `trial` and `about`. 0 or -errno with err set.
int in_effect_find(const char *instance, struct in_effect *e, struct err *err);
// Its record, with its files; about.revision is not "". 0 or -errno with err set.
int in_effect_load(const char *instance, struct in_effect *e, struct err *err);
// The interfaces of a revision that was applied with -i, which differ from its text; else none.
// They point into `about`.
int in_effect_ifaces(const char *instance, const char *revision,
		     const struct generation_about *about, const char **ret, size_t *ret_n,
		     struct err *err);

// Is the file the text of an accepted revision that is not the current one? It was rolled back, or
// replaced by another policy, and stays so until a person applies it again. The files of revisions
// are not read.
bool revision_was_replaced(const char *instance, const char *path, char ret_revision[REVISION_ID],
			   char ret_current[REVISION_ID]);
