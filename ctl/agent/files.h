// SPDX-License-Identifier: GPL-2.0-only
// The policy file of `weir run FILE`: applied again when what it is made from changes.
#pragma once

#include <stdbool.h>

struct agent;
struct inputs;

// Applies the policy of the agent in a process of its own, once more after the one that runs. offline: with the copies
// of its feeds. Without a policy file nothing happens.
void files_apply(struct agent *a, bool offline);
// What the policy is made from, as it was last read; NULL without a policy file.
const struct inputs *files_inputs(const struct agent *a);
