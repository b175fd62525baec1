// SPDX-License-Identifier: GPL-2.0-only
// The policy file of `weir run`: applied again when one of its inputs changes, or when it appears.
// The results of all applies of the agent are counted and logged here.
#pragma once

#include <stdbool.h>

#include "ctl/agent/agent.h"

struct inputs;
struct process_result;

// Applies the policy of the agent in a process of its own, once more after the one that runs.
// offline: with the copies of its feeds. Without a policy file nothing happens.
void files_apply(struct agent *a, bool offline);
// Only the default file is allowed not to exist; another one then is an error of its apply.
bool files_have_policy(const struct agent *a);
// The inputs of the policy, as last read; NULL before the start of the part.
const struct inputs *files_inputs(const struct agent *a);

// One has ended; for metrics.
void applies_count(struct agent *a, enum applies_source source, bool ok);
// Logs the messages of a `weir apply` that succeeded: as a notice if it is awaited or if something
// has changed. Warnings that the last apply has given too are left out.
void applies_log(struct agent *a, const struct process_result *r, bool awaited);
