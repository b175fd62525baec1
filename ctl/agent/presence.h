// SPDX-License-Identifier: GPL-2.0-only
// Whether an instance has an agent, and what that agent tells of itself: for the agent and for `weir status`.
//
// /run/weir/NAME/agent is locked as long as the agent lives, and has its pid. /run/weir/NAME/agent.json has its report;
// the agent replaces it when it changes, and removes it at its end. So a report without a lock is what a killed agent
// has left.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"

// Takes the lock. ERR_REFUSED with the pid of the agent that has it. 0 or -errno with err set.
int presence_take(const char *instance, int *ret_fd, struct err *err);
// Replaces the report. 0 or -errno with err set.
int presence_report(const char *instance, const struct json *report, struct err *err);
// Removes the report.
void presence_leave(const char *instance);

struct presence {
	bool runs;           // an agent has the lock
	bool killed;         // none has, but a report is there
	uint64_t pid;        // 0: not known
	struct json *report; // NULL: none that can be read
};
void presence_read(const char *instance, struct presence *ret);
void presence_free(struct presence *p);
#define CLEANUP_PRESENCE CLEANUP(presence_free)
