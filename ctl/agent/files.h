// SPDX-License-Identifier: GPL-2.0-only
// The policy file of `weir run`: applied again when one of its inputs changes, or when it appears.
#pragma once

#include <stdbool.h>

struct agent;
struct inputs;

// Applies the policy of the agent in a process of its own, once more after the one that runs.
// offline: with the copies of its feeds. Without a policy file nothing happens.
void files_apply(struct agent *a, bool offline);
// Only the default file is allowed not to exist; another one then is an error of its apply.
bool files_have_policy(const struct agent *a);
// The inputs of the policy, as last read; NULL before the start of the part.
const struct inputs *files_inputs(const struct agent *a);
