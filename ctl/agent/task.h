// SPDX-License-Identifier: GPL-2.0-only
// Work of the agent that may need the lock of the instance: run at a time, tried again while
// another has the lock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct agent;
struct event;

struct agent_task {
	struct agent *agent;
	const char *what; // for messages: "removal of expired entries"
	// -EAGAIN: another process has the lock, which is nothing to tell at first. Another failure
	// is logged when it begins, tried again later and later, and a problem until it works.
	int (*run)(void *ctx, struct err *err);
	void *ctx;
	struct event *timer;
	uint64_t due_ms;    // monotonic; 0: not planned
	uint64_t since_ms;  // of the first of the failures in a row
	unsigned failures;  // in a row, with the lock of others
	struct err problem; // text "": none
};

// 0 or -ENOMEM with err set. `what` stays the caller's.
int agent_task_init(struct agent_task *t, struct agent *a, const char *what,
		    int (*run)(void *ctx, struct err *err), void *ctx, struct err *err);
void agent_task_free(struct agent_task *t);
// Runs once, in `ms` at the latest; what is planned for an earlier time stays so.
void agent_task_in(struct agent_task *t, uint64_t ms);
// As a part of agent_part.report.
void agent_task_report(const struct agent_task *t, struct json *problems);
// CLOCK_MONOTONIC.
uint64_t agent_now_ms(void);
