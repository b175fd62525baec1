// SPDX-License-Identifier: GPL-2.0-only
// How often the agent has applied a policy, for metrics, and what it says about one.
#pragma once

#include <stdbool.h>

#include "ctl/agent/agent.h"
#include "ctl/base/json.h"

struct process_result;

// One has ended.
void applies_count(struct agent *a, enum applies_source source, bool ok);
// Logs the messages of a `weir apply` that succeeded: as a notice if it is awaited or if something
// has changed. Warnings that the last apply has given too are left out.
void applies_log(struct agent *a, const struct process_result *r, bool awaited);
// An array, with an element for each source.
struct json *applies_report(const struct agent *a);
