// SPDX-License-Identifier: GPL-2.0-only
// A timer of the agent and its work, which may need the lock of the instance: run at a time, tried
// again while another process has the lock, or after a failure.
#pragma once

#include <stdint.h>

#include "ctl/agent/trouble.h"
#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct agent;
struct event;

struct agent_task {
	struct agent *agent;
	const char *what; // for messages: "removal of expired entries"
	// -EAGAIN: another process has the lock, which is nothing to report at first. Another
	// failure is logged when it begins, tried again later and later, and a problem until it
	// works. -EINPROGRESS: the work has only begun, and agent_task_end() follows.
	int (*run)(void *ctx, struct err *err);
	void *ctx;
	struct event *timer;
	uint64_t due_ms;   // monotonic; 0: not planned
	uint64_t since_ms; // time of the first of the consecutive failures
	struct trouble trouble;
};

// Without memory for the timer the program ends. `what` stays the caller's.
void agent_task_init(struct agent_task *t, struct agent *a, const char *what,
		     int (*run)(void *ctx, struct err *err), void *ctx);
void agent_task_free(struct agent_task *t); // also of a task that was not initialized
// Runs once, in `ms` at the latest; an earlier planned time is kept.
void agent_task_in(struct agent_task *t, uint64_t ms);
// Runs once, in `ms`, instead of the planned time.
void agent_task_move(struct agent_task *t, uint64_t ms);
void agent_task_cancel(struct agent_task *t);
// Work that `run` has only begun has ended: as if `run` had returned its result.
void agent_task_end(struct agent_task *t, int code, const struct err *err);
// As a part of agent_part.report.
void agent_task_report(const struct agent_task *t, struct json *problems);
// To be called by a part when its report has changed: `weir status` shows it soon.
void agent_changed(struct agent *a);
// CLOCK_MONOTONIC.
uint64_t agent_now_ms(void);
