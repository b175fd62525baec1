// SPDX-License-Identifier: GPL-2.0-only
// Runs tasks of the agent after commands that have changed the instance.
//
// All commands that change the instance write their name into its lock file when they take the
// lock, and inotify reports that. A task that then looks under the shared lock finds what the
// command has done. The agent's own changes are reported too.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"

struct agent;
struct agent_task;
struct commands;

// 0 or -errno with err set.
int commands_watch(struct agent *a, struct commands **ret, struct err *err);
void commands_free(struct commands *c);

// From now on the task runs within `ms` after each command has begun; tasks last as long as the
// agent.
void agent_after_command(struct agent *a, struct agent_task *task, uint64_t ms);
