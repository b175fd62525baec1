// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for `over N connections`: counts the connections of this host again each
// minute.
//
// The programs count exactly (xdp/connections.bpf.c), unless a program of others turns off the
// callbacks of a socket, or a socket that was found at the load closes in the moment between.
#include <errno.h>
#include <stdlib.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/connections.h"
#include "ctl/datapath/lock.h"

#define FIRST_MS 1000 // no agent may have run before
#define EVERY_MS 60000

struct recount {
	struct agent *agent;
	struct agent_task task;
	struct agent_process *counting; // NULL: none runs
};

// In a copy of the agent: a host may have a million sockets.
static int count(void *part, struct text *output, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_GENERATION struct generation *g = NULL;
	const struct recount *r = part;
	struct commit_state state;
	CLEANUP_FD int lock = -1;
	int code = lock_take(r->agent->instance, r->agent->command, &lock, err);

	if (code)
		return code;
	if ((code = instance_open(r->agent->instance, &i, err)) ||
	    (code = commit_read(i, &state, err)) ||
	    (code = generation_open(i, state.in_force, &g, err)))
		return code;
	return connections_are_counted(g) ? connections_repeat(g, err) : 0;
}

static void on_counted(void *part, const struct process_result *result)
{
	struct recount *r = part;

	r->counting = NULL;
	agent_task_end(&r->task, result->status, &result->err);
	if (!result->status)
		agent_task_in(&r->task, EVERY_MS);
}

static int is_needed(const struct recount *r, bool *ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_GENERATION struct generation *g = NULL;
	struct commit_state state;
	CLEANUP_FD int lock = -1;
	int code = lock_share(r->agent->instance, &lock, err);

	if (code)
		return code;
	if ((code = instance_open(r->agent->instance, &i, err)) ||
	    (code = commit_read(i, &state, err)) ||
	    (code = generation_open(i, state.in_force, &g, err)))
		return code;
	*ret = connections_are_counted(g);
	return 0;
}

static int run(void *part, struct err *err)
{
	const struct process_request request = {.run = count, .done = on_counted, .ctx = part};
	struct recount *r = part;
	bool needed = false;
	int code;

	if (r->counting)
		return -EINPROGRESS;
	if (!bpffs_exist(r->agent->instance))
		code = 0;
	else
		code = is_needed(r, &needed, err);
	if (code)
		return code;
	if (!needed) {
		agent_task_in(&r->task, EVERY_MS);
		return 0;
	}
	code = process_start(r->agent, &request, &r->counting, err);
	return code ? code : -EINPROGRESS;
}

static int start(struct agent *a, struct err *err)
{
	struct recount *r = mem_new(struct recount);

	r->agent = a;
	a->recount = r;
	agent_task_init(&r->task, a, "count of connections", run, r);
	agent_task_in(&r->task, FIRST_MS);
	return 0;
}

static void stop(struct agent *a)
{
	struct recount *r = a->recount;

	if (!r)
		return;
	agent_task_free(&r->task);
	process_stop(r->counting);
	free(r);
	a->recount = NULL;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	agent_task_report(&a->recount->task, problems);
}

const struct agent_part agent_recount = {
	.name = "connections",
	.start = start,
	.stop = stop,
	.report = report,
};
