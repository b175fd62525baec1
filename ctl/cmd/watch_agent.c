// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/cmd/watch_agent.h"

#include "ctl/agent/events.h"
#include "ctl/base/mem.h"

int watch_agent_open(const struct watch_agent_wish *wish, struct agent_stream **ret,
		     struct err *err)
{
	CLEANUP_FREE char *since = wish->since ? mem_printf("since=%s", wish->since) : NULL;
	CLEANUP_FREE char *request = mem_printf(
		API_EVENTS "%s%s%s%s", since || wish->logged ? "?" : "", since ? since : "",
		since && wish->logged ? "&" : "", wish->logged ? "logged" : "");

	return agent_stream_open(wish->instance, request, ret, err);
}
