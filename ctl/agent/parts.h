// SPDX-License-Identifier: GPL-2.0-only
// All parts of the agent: their start and end, the loop, signals, the service manager, the report.
#pragma once

#include "ctl/agent/agent.h"

// Runs until SIGTERM or SIGINT. For `weir page`: only its parts, without a report, and beside an
// agent. For an agent: the caller has taken the lock of presence.h, has made the heart and filled
// in *a up to `refused`. presence_leave() writes what `weir status` reports afterwards. 0 or
// -errno with err set.
int parts_run(struct agent *a, struct err *err);
// A reload is done (READY=1) when every part that has called the first has called the second, for
// work that continues after its reload().
void parts_reload_continues(struct agent *a);
void parts_reload_done(struct agent *a);
