// SPDX-License-Identifier: GPL-2.0-only
// Whether an instance has an agent, and the agent's report: for the agent and for `weir status`.
//
// /run/weir/NAME/agent is locked as long as the agent lives, and has its pid.
// /run/weir/NAME/agent.json has its report; the agent replaces it when it changes, and at its end
// by a report of the end. So without a lock, any other report is what a killed agent has left. No
// file outlives a boot.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"

// Takes the lock. ERR_REFUSED with the pid of the agent that has it. 0 or -errno with err set.
int presence_take(const char *instance, int *ret_fd, struct err *err);
// Replaces the report. 0 or -errno with err set.
int presence_report(const char *instance, const struct json *report, struct err *err);
// Replaces the report by one of the end. file: the policy that the agent has followed; NULL: none.
// why: NULL, or the error with which it ends.
void presence_leave(const char *instance, const char *file, const struct err *why);
// Removes what agents have left; none may run. *ret_any: there was something. 0 or -errno with err
// set.
int presence_forget(const char *instance, bool dry_run, bool *ret_any, struct err *err);

struct presence {
	bool runs;    // an agent has the lock
	bool killed;  // none has, but a report is there
	bool ended;   // none has, and the last one has ended by itself: "ended_s", "file", "error"
	uint64_t pid; // 0: not known
	// for a running agent: since its last turn, if that is long ago; else 0
	uint64_t late_ms;
	struct json *report; // NULL: none that can be read
};
void presence_read(const char *instance, struct presence *ret);
// The report of a part of the running agent; NULL: not known.
const struct json *presence_part(const struct presence *p, const char *part);
void presence_free(struct presence *p);
#define CLEANUP_PRESENCE CLEANUP(presence_free)
