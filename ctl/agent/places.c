// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the countries and autonomous systems of entries: looks them up in a
// copy of the agent (refreshing.h) when their plan decides so (places_plan.h).
#include <stdlib.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/places_plan.h"
#include "ctl/agent/refreshing.h"
#include "ctl/agent/task.h"
#include "ctl/agent/watches.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_db.h"

#define PROBLEMS_SHOWN 5

struct places_part {
	struct agent *agent;
	struct watches *watches;
	struct refreshing *asking;
	struct agent_task ask;
	bool watching;
	struct places_plan plan;
};

// ---- what the plan says -------------------------------------------------------------------------

static void watch(struct places_part *p)
{
	CLEANUP(watches_paths_free) struct watches_paths paths = {0};
	CLEANUP(geo_paths_free) struct geo_paths databases = {0};

	if (p->watching == (p->plan.n != 0))
		return;
	p->watching = p->plan.n != 0;
	if (p->watching)
		geo_db_patterns(&databases);
	vec_each (&databases.paths, path)
		vec_push(&paths.all, TAKE_PTR(*path));
	databases.paths.n = 0;
	watches_set(p->watches, &paths);
}

static void follow_plan(struct places_part *p)
{
	const struct plan_now now = plan_now();
	uint64_t due = p->plan.due_ms;

	plan_log(&p->plan.messages);
	watch(p);
	if (due && !p->plan.running)
		agent_task_move(&p->ask, due > now.ms ? due - now.ms : 0);
	agent_changed(p->agent);
}

// ---- events -------------------------------------------------------------------------------------

static void on_answer(void *part, const struct refreshing_result *r)
{
	const struct plan_now now = plan_now();
	struct places_part *p = part;

	p->asking = NULL;
	places_plan_answered(&p->plan, &r->names, r->failed.text[0] || r->refused.entries.text[0],
			     &now);
	follow_plan(p);
}

static int ask(void *part, struct err *err)
{
	const struct plan_now now = plan_now();
	struct places_part *p = part;
	const struct refreshing_request request = {
		.where = REFRESH_PLACES, .done = on_answer, .ctx = p};
	int code;

	if (!places_plan_begin(&p->plan, &now))
		return 0;
	if ((code = refreshing_start(p->agent, &request, &p->asking, err)))
		places_plan_not_begun(&p->plan);
	return code;
}

static void on_change(void *part)
{
	const struct plan_now now = plan_now();
	struct places_part *p = part;

	places_plan_hurry(&p->plan, &now);
	follow_plan(p);
}

void places_listed(struct agent *a, size_t n)
{
	const struct plan_now now = plan_now();

	if (!a->places)
		return;
	places_plan_listed(&a->places->plan, n, &now);
	follow_plan(a->places);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct places_part *p = mem_new(struct places_part);

	p->agent = a;
	a->places = p;
	agent_task_init(&p->ask, a, "countries and autonomous systems", ask, p);
	return watches_new(a, on_change, p, &p->watches, err);
}

static void stop(struct agent *a)
{
	struct places_part *p = TAKE_PTR(a->places);

	if (!p)
		return;
	refreshing_stop(p->asking);
	watches_free(p->watches);
	agent_task_free(&p->ask);
	places_plan_free(&p->plan);
	free(p);
}

static int reload(struct agent *a, struct err *err)
{
	on_change(a->places);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct places_part *p = a->places;

	for (size_t n = 0; n < p->plan.troubles.all.n && n < PROBLEMS_SHOWN; n++)
		trouble_report(&p->plan.troubles.all.at[n].trouble, NULL, problems);
	agent_task_report(&p->ask, problems);
	json_set(fields, "places", json_u64(p->plan.n));
	json_set(fields, "failing", json_u64(p->plan.troubles.all.n));
}

const struct agent_part agent_places = {
	.name = "places",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
