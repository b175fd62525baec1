// SPDX-License-Identifier: GPL-2.0-only
// The host names of entries and of the policy in weir status: how old their answers are.
#pragma once

#include "ctl/agent/presence.h"
#include "ctl/cmd/command.h"

// With an agent, what it tells of them.
void status_names_show(struct context *ctx, const struct presence *agent, uint64_t now_s);
