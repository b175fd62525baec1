// SPDX-License-Identifier: GPL-2.0-only
// The feeds that the agent follows, in weir status: URL, entries, age, the time of the next fetch.
#pragma once

#include "ctl/agent/presence.h"
#include "ctl/cmd/command.h"

// Text only: the document has them in the part of the agent.
void status_feeds_show(struct context *ctx, const struct presence *agent, uint64_t now_s);
