// SPDX-License-Identifier: GPL-2.0-only
// Decides when a feed is fetched, and what follows from its text. Pure: results of steps and times
// in; the next step, its time and messages out.
//
// A new text of a policy's feed becomes the copy on disk. A new text of a list becomes its content
// by a command, and then the copy; so does the same text each time if its entries have ends or its
// lines names. After a failure the last good text stays in use.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/agent/plan.h"
#include "ctl/agent/trouble.h"

enum feed_step {
	FEED_WAITS, // until its time
	FEED_FETCHES,
	FEED_READS, // the text is judged: a policy's becomes the copy, a list's the command's input
	FEED_CHANGES, // the command changes the list
	FEED_SAVES,   // the text becomes the copy of the list
};

// The findings in a text.
struct feed_found {
	uint64_t entries;
	bool same;  // the text is the copy on disk already
	bool plain; // it has neither ends nor names
};

// All zero at first, but for random and url.
struct feed_plan {
	uint64_t random;     // the state of its random numbers
	const char *url;     // for messages
	bool list;           // a list follows it; else a policy
	bool ends;           // the entries of the list have ends
	uint64_t copy_time;  // of the file of the copy; 0: none
	uint64_t plain_time; // the copy of this time has neither ends nor names; 0: not known
	uint64_t every_ms;
	enum feed_step step;    // that runs
	bool fresh;             // its text is not the copy
	bool plain;             // its text has neither ends nor names
	uint64_t due_ms, due_s; // when it is fetched: monotonic, wall clock
	uint64_t good_s;        // wall clock: of the last good answer, changed or not; 0: none yet
	struct trouble trouble;
	// For the caller, who takes them:
	struct plan_messages messages;
	bool failing, good; // its failures have begun, or ended
	bool changed;       // the copy is another one: what was made from it is applied again
};
void feed_plan_free(struct feed_plan *p);

// It is fetched every so often from now on; without a copy soon.
void feed_plan_follow(struct feed_plan *p, uint64_t every_ms, bool has_copy,
		      const struct plan_now *now);
// It is fetched soon, or at once: then the caller cancels a fetch that runs.
void feed_plan_hurry(struct feed_plan *p, bool at_once, const struct plan_now *now);
// True: it is due, so the caller fetches it. False: a step runs.
bool feed_plan_begin(struct feed_plan *p);
// Nothing changes when the copy is the content of the list again.
bool feed_plan_is_plain(const struct feed_plan *p);

// The step that runs has succeeded; each returns the next one. FEED_WAITS: the text is not needed
// any more. same: the server has reported that the copy is current.
enum feed_step feed_plan_fetched(struct feed_plan *p, bool same, const struct plan_now *now);
enum feed_step feed_plan_read(struct feed_plan *p, const struct feed_found *found,
			      const struct plan_now *now);
enum feed_step feed_plan_listed(struct feed_plan *p, const struct plan_now *now);
enum feed_step feed_plan_saved(struct feed_plan *p, uint64_t copy_time, const struct plan_now *now);
// It has failed. why: a sentence, full: the same for the log. The plan may have forgotten the copy.
void feed_plan_failed(struct feed_plan *p, const char *why, const char *full,
		      const struct plan_now *now);
