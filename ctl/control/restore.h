// SPDX-License-Identifier: GPL-2.0-only
// Restores the accepted policy in a new instance, before anything is attached.
#pragma once

#include "ctl/control/candidate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/instance.h"

// What of that takes its time: compiled from its record, next hops asked for.
struct restore {
	struct candidate *candidate;
	struct revision revision; // without id: nothing is prepared
};
void restore_free(struct restore *r);
#define CLEANUP_RESTORE CLEANUP(restore_free)

// Without the lock, as neighbours may be waited for. What goes wrong shows when it is done with the
// lock.
void restore_prepare(const char *instance, struct restore *ret);
// Loads the current revision and puts it into both slots; if another one was prepared, prepares
// this one. No accepted policy: 0 and an empty ret_revision. The caller holds the lock.
int restore_policy(const struct instance *i, struct restore *r, char ret_revision[REVISION_ID],
		   struct err *err);
