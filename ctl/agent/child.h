// SPDX-License-Identifier: GPL-2.0-only
// A command of weir that the agent runs as a process of its own: what takes long, or waits.
//
// The command has the instance, the network namespace and the databases of the agent. It refuses what it would refuse
// for a person without --force.
#pragma once

#include <sys/types.h>

#include "ctl/base/err.h"

struct agent;
struct child;

// In the environment:
#define CHILD_WITHOUT_LOGIN "WEIR_WITHOUT_LOGIN" // the agent has no login
#define CHILD_FOR           "WEIR_FOR" // who asked, if messages are among those of the agent

// The command has ended: its exit status (ERR_SYSTEM also if it was killed), and what it has printed, its last
// newline left out.
typedef void child_done(void *ctx, int status, const char *said);

// args: the command and its arguments, ended by NULL; they may be freed after the call. 0 or -errno with err set.
int child_start(struct agent *a, const char *const *args, child_done *done, void *ctx,
		struct child **ret, struct err *err);
// --resolver and --resolver-timeout of the agent, for a command that resolves names: at most CHILD_RESOLVER words, and
// NULL.
#define CHILD_RESOLVER 4
void child_add_resolver(const struct agent *a, const char **args);
// Its standard input, output and error; -1: no input, and the errors of the agent, where they begin with "api: ".
struct child_files {
	int in, out, errors;
};
// Only starts it. The caller waits for it.
int child_spawn(const struct agent *a, const char *const *args, const struct child_files *files,
		pid_t *ret, struct err *err);
// What it has printed, line by line, by one of the functions of base/log.h; "weir: " is left out.
void child_tell(void (*log)(const char *fmt, ...), const char *said);
// Kills a command that runs; a killed one leaves the old or the new state. No call of `done`. NULL is allowed.
void child_stop(struct child *c);
