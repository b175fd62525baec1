// SPDX-License-Identifier: GPL-2.0-only
// A function that runs in a copy of the agent (fork), for what takes long and needs what the agent
// has in memory.
//
// Nothing that it changes in memory reaches the agent, but for its result.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"

struct agent;
struct worker;

// In the copy: 0 or -errno with err set, and a number for `done`.
typedef int worker_run(void *ctx, uint64_t *ret_value, struct err *err);
// In the agent, once for each worker_start() that worker_stop() does not end. code: of `run`, or
// why it has no result.
typedef void worker_done(void *ctx, int code, uint64_t value, const struct err *err);

// 0 or -errno with err set.
int worker_start(struct agent *a, worker_run *run, worker_done *done, void *ctx,
		 struct worker **ret, struct err *err);
// Kills it, without a call of `done`. NULL is allowed.
void worker_stop(struct worker *w);
