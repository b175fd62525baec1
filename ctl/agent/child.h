// SPDX-License-Identifier: GPL-2.0-only
// A command of weir that the agent runs as a process of its own: what takes long, or waits. Its
// output: exchange.h.
//
// The command has the instance, the network namespace and the databases of the agent. It refuses
// what it would refuse for a person without --force.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "ctl/base/err.h"

struct agent;

// In the environment:
#define CHILD_WITHOUT_LOGIN "WEIR_WITHOUT_LOGIN" // the agent has no login
#define CHILD_FOR           "WEIR_FOR"           // who asked, if the agent prints the messages
#define CHILD_BY            "WEIR_BY"            // the author of what it changes: "agent (file)"
#define CHILD_TELLS         "WEIR_TELLS"         // with -j, its lines go to standard error
#define CHILD_RESOLVER      "WEIR_RESOLVER"      // --resolver and --resolver-timeout of the agent,
#define CHILD_TIMEOUT       "WEIR_TIMEOUT"       // unless the command has its own

// Its standard input, output and error; errors -1: the agent's, where lines begin with "api: ".
struct child_files {
	int in, out, errors;
	bool tells;     // also its lines go to `errors`, with -j
	const char *by; // the author of what it changes; NULL: CHILD_AGENT
};
#define CHILD_AGENT     "agent"
#define CHILD_AGENT_API "agent (api)"
// Only starts it. The caller waits for it. args: the command and its arguments, ended by NULL; they
// may be freed after the call. 0 or -errno with err set.
int child_spawn(const struct agent *a, const char *const *args, const struct child_files *files,
		pid_t *ret, struct err *err);
