// SPDX-License-Identifier: GPL-2.0-only
// The agent in weir status: whether one runs, since when, and its parts.
#pragma once

#include "ctl/agent/presence.h"
#include "ctl/cmd/command.h"

void status_agent_show(struct context *ctx, const struct presence *p, uint64_t now_s);
