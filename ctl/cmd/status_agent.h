// SPDX-License-Identifier: GPL-2.0-only
// The agent's part of weir status: whether one runs, and what is wrong with its parts.
#pragma once

#include "ctl/agent/presence.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/status_services.h"

void status_agent_show(struct context *ctx, const struct presence *p, uint64_t now_s);
void status_agent_alarms(const struct context *ctx, const struct presence *p, status_alarm *alarm,
			 void *status);
