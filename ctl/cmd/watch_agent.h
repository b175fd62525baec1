// SPDX-License-Identifier: GPL-2.0-only
// The events that the agent of an instance has read, for any number of `weir watch`.
#pragma once

#include <stdbool.h>

#include "ctl/cmd/agent_stream.h"

struct watch_agent_wish {
	const char *instance;
	const char *since; // first the kept events of this time, such as "10m"; NULL: none
	bool logged;       // only packets that rules log
};

// Its documents are events; "missed" (events that were left out because this process was too slow);
// "error" (events that the agent cannot read). As agent_stream_open().
int watch_agent_open(const struct watch_agent_wish *wish, struct agent_stream **ret,
		     struct err *err);
