// SPDX-License-Identifier: GPL-2.0-only
// The events that the agent of an instance has read, for any number of `weir watch`.
#pragma once

#include <stdbool.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct watch_agent;

struct watch_agent_wish {
	const char *instance;
	const char *since; // first the kept events of this time, such as "10m"; NULL: none
	bool logged;       // only packets that rules log
};

typedef void watch_agent_visit(void *ctx, const struct json *document);

// *ret NULL: no agent runs, or one without /v1/events. 0 or -errno with err set.
int watch_agent_open(const struct watch_agent_wish *wish, struct watch_agent **ret,
		     struct err *err);
void watch_agent_close(struct watch_agent *a); // NULL is allowed
// Visits the documents that arrive within timeout_ms: events; "missed" (events that were left out
// because this process was too slow); "error" (events that the agent cannot read). 0; -EPIPE:
// the agent has ended; -EINTR: a signal.
int watch_agent_poll(struct watch_agent *a, int timeout_ms, watch_agent_visit *visit, void *ctx);
