// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the host names of entries and of the policy: a name whose time has come
// (names_plan.h) is asked for in a copy of the agent (refreshing.h).
#include <errno.h>
#include <stdlib.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/names_plan.h"
#include "ctl/agent/record.h"
#include "ctl/agent/refreshing.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

#define AFTER_COMMAND  1000
#define LIST_SHARE     20 // looking for names takes at most a twentieth of the time
#define PROBLEMS_SHOWN 5

struct names_part {
	struct agent *agent;
	struct agent_task list, ask;
	struct refreshing *listing, *asking;
	uint64_t began_ms, listed_ms; // the last listing
	struct names_plan plan;
};

// ---- what the plan says -------------------------------------------------------------------------

static void follow_plan(struct names_part *p)
{
	const struct plan_now at = plan_now();
	uint64_t wait = names_plan_wait_ms(&p->plan, &at);

	plan_log(&p->plan.messages);
	if (p->plan.list_ms)
		agent_task_in(&p->list, p->plan.list_ms);
	p->plan.list_ms = 0;
	if (wait == UINT64_MAX || p->asking)
		agent_task_cancel(&p->ask);
	else
		agent_task_move(&p->ask, wait);
	agent_changed(p->agent);
}

// An instance that is detached as a whole has no names, and `weir status` reports it.
static const char *reportable(const struct names_part *p, const struct err *failure)
{
	return bpffs_exist(p->agent->instance) ? failure->text : NULL;
}

// ---- asking -------------------------------------------------------------------------------------

static void record_names(struct agent *a, const struct refresh *names)
{
	vec_each (names, one) {
		CLEANUP_FREE char *what = mem_printf("name %s", one->name);

		// An answer that cannot be put into effect changes nothing.
		if (one->error || one->kept)
			continue;
		if (one->added || one->leaving || one->back || one->released)
			record_change(a, &(struct record_change){.part = "names",
								 .verb = "name",
								 .what = what,
								 .entries = true,
								 .added = one->added + one->back,
								 .removed = one->leaving +
									    one->released});
	}
}

static void on_answers(void *part, const struct refreshing_result *r)
{
	const struct plan_now at = plan_now();
	struct names_part *p = part;

	p->asking = NULL;
	if (r->failed.text[0])
		names_plan_question_failed(&p->plan, reportable(p, &r->failed), &at);
	else
		names_plan_answered(&p->plan, &r->names, &r->refused, &at);
	if (!r->failed.text[0])
		record_names(p->agent, &r->names);
	follow_plan(p);
}

static int ask(void *part, struct err *err)
{
	struct names_part *p = part;
	const struct plan_now at = plan_now();
	const char *due[NAMES_AT_ONCE];
	struct refreshing_request request = {
		.where = REFRESH_ENTRIES | REFRESH_POLICY,
		.names = due,
		.done = on_answers,
		.ctx = p,
	};
	struct err why = {0};

	if (p->asking)
		return 0;
	request.n = names_plan_ask(&p->plan, &at, due);
	if (request.n && refreshing_start(p->agent, &request, &p->asking, &why))
		names_plan_question_failed(&p->plan, reportable(p, &why), &at);
	follow_plan(p);
	return 0;
}

// ---- listing ------------------------------------------------------------------------------------

static void take_list(struct names_part *p, const struct refreshing_result *r)
{
	const struct plan_now at = plan_now();
	size_t places = 0;

	names_plan_listed(&p->plan, &r->names, &r->refused, &at);
	vec_each (&r->names, one)
		places += one->place;
	places_listed(p->agent, places);
}

static void on_list(void *part, const struct refreshing_result *r)
{
	struct names_part *p = part;

	p->listing = NULL;
	p->listed_ms = agent_now_ms();
	if (r->failed.text[0])
		names_plan_list_failed(&p->plan, reportable(p, &r->failed));
	else if (p->asking)
		agent_task_in(&p->list, AFTER_COMMAND);
	else
		take_list(p, r);
	follow_plan(p);
}

static int list(void *part, struct err *err)
{
	struct names_part *p = part;
	const struct refreshing_request request = {
		.where = REFRESH_ALL, .lists = true, .done = on_list, .ctx = p};
	uint64_t pause = (p->listed_ms - p->began_ms) * LIST_SHARE, now_ms = agent_now_ms();
	int code;

	// Later is neither a failure nor the end of one.
	if (p->listing || p->asking || (p->listed_ms && now_ms - p->listed_ms < pause)) {
		agent_task_in(&p->list, AFTER_COMMAND);
		return -EINPROGRESS;
	}
	if ((code = refreshing_start(p->agent, &request, &p->listing, err)))
		return code;
	p->began_ms = now_ms;
	return 0;
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct names_part *p = mem_new(struct names_part);

	p->agent = a;
	a->names = p;
	agent_task_init(&p->ask, a, "names that are due", ask, p);
	agent_task_init(&p->list, a, "list of names", list, p);
	agent_after_command(a, &p->list, AFTER_COMMAND);
	agent_task_in(&p->list, 0);
	return plan_random(&p->plan.random, err);
}

static void stop(struct agent *a)
{
	struct names_part *p = TAKE_PTR(a->names);

	if (!p)
		return;
	refreshing_stop(p->listing);
	refreshing_stop(p->asking);
	agent_task_free(&p->list);
	agent_task_free(&p->ask);
	names_plan_free(&p->plan);
	free(p);
}

static int reload(struct agent *a, struct err *err)
{
	const struct plan_now at = plan_now();

	names_plan_hurry(&a->names->plan, &at);
	agent_task_in(&a->names->list, 0);
	follow_plan(a->names);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct names_plan *p = &a->names->plan;
	const struct plan_now at = plan_now();
	uint64_t oldest = UINT64_MAX, next = UINT64_MAX;
	size_t failing = 0;

	vec_each (&p->names, one) {
		next = one->due_ms < next ? one->due_ms : next;
		if (one->empty)
			continue;
		failing += one->failures > 0;
		oldest = one->answered_s < oldest ? one->answered_s : oldest;
		if (one->why && failing <= PROBLEMS_SHOWN)
			json_append(problems, json_string(one->why));
	}
	for (size_t n = 0; n < TROUBLES; n++)
		trouble_report(&p->troubles[n], NULL, problems);
	agent_task_report(&a->names->list, problems);
	json_set(fields, "names", json_u64(p->names.n));
	json_set(fields, "fresh", json_u64(p->names.n - failing));
	json_set(fields, "failing", json_u64(failing));
	if (oldest != UINT64_MAX)
		json_set(fields, "oldest_s", json_u64(oldest));
	if (next != UINT64_MAX)
		json_set(fields, "next_s",
			 json_u64(at.wall_s + (next > at.ms ? next - at.ms : 0) / 1000));
}

const struct agent_part agent_names = {
	.name = "names",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
