// SPDX-License-Identifier: GPL-2.0-only
// Decides when the policy file and the active policy are applied, and what is logged. Pure: the
// state of files and of the instance, results and times in; applies and times out.
//
// Of each there is one apply at a time. What changes meanwhile causes another one, and a failure is
// tried again with increasing delays.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/agent/plan.h"
#include "ctl/agent/trouble.h"
#include "ctl/base/sum.h"
#include "ctl/control/revisions.h"

// ---- the policy file ----------------------------------------------------------------------------

// The policy file, as it is now.
struct file_seen {
	bool exists;
	bool optional; // the default file: it need not exist
	sum_text text; // "": it cannot be read
	// The revision that it is, if the current one has replaced it: then only a
	// person applies it again; else "".
	char replaced[REVISION_ID], current[REVISION_ID];
};

// All zero at first, but for path and refused.
struct file_plan {
	const char *path;           // for messages
	struct trouble *refused;    // why it was not applied
	bool running;               // an apply
	bool wanted, offline;       // an apply after that; with the copies of its feeds
	bool reloading;             // the next end of all applies ends a reload
	bool gone;                  // it has existed since the agent began, and does not now
	sum_text text;              // when it was last read; "": never
	char accepted[REVISION_ID]; // when it was refused last
	char first[256];            // line of the last refusal; "": not known
	uint64_t due_ms;            // when it is tried again; 0: never
	// For the caller, who takes them:
	struct plan_messages messages;
};
void file_plan_free(struct file_plan *p);

// The agent begins. If the file existed, it was applied, or refused with `accepted` as the current
// revision; else it may have come in the meantime.
void file_plan_start(struct file_plan *p, const struct file_seen *seen, bool was_absent,
		     const char *accepted, const struct plan_now *now);
// One of its inputs has changed. A reload accepts that the default file is gone.
void file_plan_changed(struct file_plan *p, const struct file_seen *seen);
// True: file_plan_ends_reload() reports its end.
bool file_plan_reload(struct file_plan *p, const struct file_seen *seen);
// Its time has come.
void file_plan_due(struct file_plan *p, const struct file_seen *seen);
// Another reason: a feed or a database. offline: with the copies of its feeds.
void file_plan_want(struct file_plan *p, const struct file_seen *seen, bool offline);
// True: after a command the revision that is now current may be news, for file_plan_accepted().
bool file_plan_awaits(const struct file_plan *p);
void file_plan_accepted(struct file_plan *p, const struct file_seen *seen, const char *accepted);

// True: the caller starts an apply. *ret_offline: with the copies of its feeds.
bool file_plan_begin(struct file_plan *p, bool *ret_offline);
// It has ended. first: the first line of its messages, "" if it has none. file_plan_failed() is
// true if the failure is to be logged: it differs from the last one.
bool file_plan_failed(struct file_plan *p, const char *why, const char *first, const char *accepted,
		      const struct plan_now *now);
void file_plan_succeeded(struct file_plan *p);
// True, once: no apply follows, and a reload has waited for that.
bool file_plan_ends_reload(struct file_plan *p);

// ---- the active policy --------------------------------------------------------------------------

// All zero at first.
struct again_plan {
	char revision[REVISION_ID]; // the active one; "": none
	bool looked, places;        // it has countries or autonomous systems
	bool running;               // an apply
	bool stale;                 // something has changed since it began
	char tried[REVISION_ID];    // active when it began
	const char *changed;        // last: "feeds" or "databases"
	char *feed;                 // the only one that has changed, without secrets; else NULL
	struct trouble trouble;
	uint64_t due_ms; // of the next apply; 0: none
	// For the caller, who takes them:
	struct plan_messages messages;
	bool file, offline; // the policy file is to be applied; with the copies of its feeds
};
void again_plan_free(struct again_plan *p);

// True: another policy is active, whose record is to be read for again_plan_read(). During a trial
// nothing changes.
bool again_plan_look(struct again_plan *p, const char *revision, bool trial);
void again_plan_read(struct again_plan *p, bool places, const struct plan_now *now);
// The copy of a feed has changed, by its public URL; or the databases have.
void again_plan_feed(struct again_plan *p, const char *feed, const struct plan_now *now);
void again_plan_databases(struct again_plan *p, const struct plan_now *now);
// True: the caller applies the active policy.
bool again_plan_begin(struct again_plan *p);
void again_plan_succeeded(struct again_plan *p, bool file_refused, const struct plan_now *now);
// It has failed. active: the policy that is now active without a trial; NULL: not known. True: it
// counts as a failure. False: another policy has come meanwhile.
bool again_plan_failed(struct again_plan *p, const char *why, const char *active,
		       const struct plan_now *now);
