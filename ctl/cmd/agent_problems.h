// SPDX-License-Identifier: GPL-2.0-only
// Problems of the agent of an instance, or of work that waits for an agent: for weir status and
// weir doctor.
//
// An agent that has ended is a problem if it is missed: the instance has host names, feeds or
// checks, or the agent followed a file. Where none has run, names and lists are one if they are
// overdue by four times their TTL or --every, and by OVERDUE_LEAST_S: a timer with weir refresh is
// enough for them.
#pragma once

#include "ctl/agent/presence.h"
#include "ctl/cmd/status_names.h"
#include "ctl/control/pool.h"

struct agent_problem {
	char *text, *mend; // mend: a command with what it does, or ""
	char *list;        // whose problem it is; NULL: the agent's
	char *same;        // equal: the same problem of an object; NULL: if the texts are
};
struct agent_problems {
	struct agent_problem *at;
	size_t n, cap;
};

// pool: of the active policy; pool->live is NULL without services.
void agent_problems_find(const char *instance, const struct presence *agent,
			 const struct status_names *names, const struct pool *pool,
			 struct agent_problems *ret);
void agent_problems_free(struct agent_problems *p);
#define CLEANUP_AGENT_PROBLEMS CLEANUP(agent_problems_free)
