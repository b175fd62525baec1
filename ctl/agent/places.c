// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the countries and autonomous systems of entries: they follow their
// databases.
//
// They are looked up in a copy of the agent (refreshing.h): once when such entries exist, when a
// database changes, and with increasing delays while one keeps its previous prefixes.
#include "ctl/agent/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/refreshing.h"
#include "ctl/agent/task.h"
#include "ctl/agent/watches.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_db.h"

#define AGAIN_FIRST_MS 10000
#define AGAIN_MOST_MS  600000
#define PROBLEMS_SHOWN 5

struct places_part {
	struct agent *agent;
	struct watches *watches;
	struct refreshing *asking;
	struct agent_task ask;
	bool wanted; // after the lookup that runs
	uint64_t asked_ms;
	unsigned failures; // in a row
	size_t failed;     // places of the last answer
	size_t n;          // such entries have so many names
	struct troubles troubles;
};

// ---- results ------------------------------------------------------------------------------------

static void fail(struct places_part *p, const char *name, const char *why)
{
	if (troubles_note(&p->troubles, name, why))
		log_warning("%s; the previous prefixes stay in use", why);
	p->failed++;
}

static void tell_change(const struct places_part *p, const struct refresh_name *row)
{
	if (row->added || row->released)
		log_notice("%s: %zu %s added, %zu removed", row->name, row->added,
			   num_plural(row->added, "prefix", "prefixes"), row->released);
	else if (troubles_why(&p->troubles, row->name))
		log_notice("%s follows its database again", row->name);
}

static void ask_later(struct places_part *p)
{
	agent_task_move(&p->ask, trouble_pause_ms(++p->failures, AGAIN_FIRST_MS, AGAIN_MOST_MS));
}

static void take_rows(struct places_part *p, const struct refreshing_result *r)
{
	p->failed = 0;
	troubles_begin(&p->troubles);
	vec_each (&r->names, row) {
		if (row->why[0])
			fail(p, row->name, row->why);
		else
			tell_change(p, row);
	}
	if ((r->failed.text[0] || r->refused.entries.text[0]) && !p->failed)
		fail(p, "", "countries and autonomous systems of entries cannot be looked for");
	troubles_end(&p->troubles, NULL, NULL);
}

static void on_answer(void *part, const struct refreshing_result *r)
{
	struct places_part *p = part;

	p->asking = NULL;
	take_rows(p, r);
	if (!p->failed)
		p->failures = 0;
	if (p->wanted)
		agent_task_move(&p->ask, 0);
	else if (p->failed)
		ask_later(p);
	agent_changed(p->agent);
}

static int ask(void *part, struct err *err)
{
	struct places_part *p = part;
	const struct refreshing_request request = {
		.where = REFRESH_PLACES, .done = on_answer, .ctx = p};

	p->wanted = p->asking;
	if (p->asking)
		return 0;
	p->asked_ms = agent_now_ms();
	return refreshing_start(p->agent, &request, &p->asking, err);
}

// ---- when ---------------------------------------------------------------------------------------

static void on_change(void *part)
{
	struct places_part *p = part;

	agent_task_move(&p->ask, 0);
}

static void watch(struct places_part *p)
{
	CLEANUP(watches_paths_free) struct watches_paths paths = {0};
	CLEANUP(geo_paths_free) struct geo_paths databases = {0};

	if (p->n)
		geo_db_patterns(&databases);
	vec_each (&databases.paths, path)
		vec_push(&paths.all, TAKE_PTR(*path));
	databases.paths.n = 0;
	watches_set(p->watches, &paths);
}

// A command may have repeated the refused change, so a problem is checked again.
void places_listed(struct agent *a, size_t n)
{
	struct places_part *p = a->places;
	bool first = p && !p->n && n, last = p && p->n && !n;

	if (!p)
		return;
	p->n = n;
	if (first || last)
		watch(p);
	if (first || (p->troubles.all.n && agent_now_ms() - p->asked_ms > AGAIN_FIRST_MS))
		agent_task_move(&p->ask, 0);
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
	troubles_free(&p->troubles);
	free(p);
}

static int reload(struct agent *a, struct err *err)
{
	if (a->places->n)
		agent_task_move(&a->places->ask, 0);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct places_part *p = a->places;

	for (size_t n = 0; n < p->troubles.all.n && n < PROBLEMS_SHOWN; n++)
		trouble_report(&p->troubles.all.at[n].trouble, NULL, problems);
	agent_task_report(&p->ask, problems);
	json_set(fields, "places", json_u64(p->n));
	json_set(fields, "failing", json_u64(p->troubles.all.n));
}

const struct agent_part agent_places = {
	.name = "places",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
