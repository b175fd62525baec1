// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the connections of nat and fullnat: walks over their table each minute.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/control/nat_tidy.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/nat_maps.h"

#define FIRST_MS 1000 // no agent may have run before
#define EVERY_MS 60000
#define SOON_MS  100 // changes in quick succession are one walk

struct nat_part {
	struct agent *agent;
	struct agent_task task;
	struct agent_process *walking; // NULL: none runs
	struct nat_unused unused;      // peers that the last walk has found unused
};

// In a copy of the agent: a walk over all blocks reads 800 MB. Output: the peers that it has found
// unused.
static int walk(void *ctx, struct text *output, struct err *err)
{
	CLEANUP_FREE struct nat_tidied *tidied = mem_new(struct nat_tidied);
	struct nat_part *part = ctx;
	int code = nat_tidy_now(part->agent->instance, part->agent->command, &part->unused, tidied,
				err);

	if (code)
		return code;
	text_addn(output, (const char *)&part->unused, sizeof(part->unused));
	return 0;
}

static void on_walked(void *ctx, const struct process_result *result)
{
	struct nat_part *part = ctx;

	part->walking = NULL;
	process_take(result, &part->unused, sizeof(part->unused));
	agent_task_end(&part->task, result->status, &result->err);
	if (!result->status)
		agent_task_in(&part->task, EVERY_MS);
}

static int is_needed(const struct nat_part *part, bool *ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_FD int lock = -1;
	int code = lock_share(part->agent->instance, &lock, err);

	if (code)
		return code;
	code = instance_open(part->agent->instance, &i, err);
	return code ? code : nat_maps_any(i, ret, err);
}

static int run(void *ctx, struct err *err)
{
	const struct process_request request = {.run = walk, .done = on_walked, .ctx = ctx};
	struct nat_part *part = ctx;
	bool needed = false;
	int code = 0;

	if (part->walking)
		return -EINPROGRESS;
	if (bpffs_exist(part->agent->instance))
		code = is_needed(part, &needed, err);
	if (code)
		return code;
	if (!needed) {
		memset(&part->unused, 0, sizeof(part->unused));
		agent_task_in(&part->task, EVERY_MS);
		return 0;
	}
	code = process_start(part->agent, &request, &part->walking, err);
	return code ? code : -EINPROGRESS;
}

void nat_backends_changed(struct agent *a)
{
	if (a->nat)
		agent_task_in(&a->nat->task, SOON_MS);
}

static int start(struct agent *a, struct err *err)
{
	struct nat_part *part = mem_new(struct nat_part);

	part->agent = a;
	a->nat = part;
	agent_task_init(&part->task, a, "walk over connections", run, part);
	agent_task_in(&part->task, FIRST_MS);
	return 0;
}

static void stop(struct agent *a)
{
	struct nat_part *part = a->nat;

	if (!part)
		return;
	agent_task_free(&part->task);
	process_stop(part->walking);
	free(part);
	a->nat = NULL;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	agent_task_report(&a->nat->task, problems);
}

const struct agent_part agent_nat = {
	.name = "nat",
	.start = start,
	.stop = stop,
	.report = report,
};
