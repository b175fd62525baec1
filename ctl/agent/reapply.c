// SPDX-License-Identifier: GPL-2.0-only
// Applies the active policy from its record, by `weir apply --again` in a process of its own, when
// its plan decides so (applies_plan.h).
//
// The databases of countries and autonomous systems are watched here, also for the policy file.
#include "ctl/agent/reapply.h"

#include <errno.h>
#include <string.h>

#include "ctl/agent/applies_plan.h"
#include "ctl/agent/files.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/agent/watches.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/active.h"
#include "ctl/control/feeds.h"
#include "ctl/net/geo_db.h"

#define OUTPUT_MAX (64u << 20)

struct reapply {
	struct agent *agent;
	struct inputs inputs; // feeds and places of the active policy
	struct watches *databases;
	bool watching;
	struct agent_process *child;
	struct agent_task apply;
	struct again_plan plan;
};

static void follow_plan(struct reapply *r)
{
	const struct plan_now now = plan_now();
	struct again_plan *p = &r->plan;
	bool file = p->file, offline = p->offline;

	p->file = p->offline = false;
	plan_log(&p->messages);
	if (p->due_ms)
		agent_task_move(&r->apply, p->due_ms > now.ms ? p->due_ms - now.ms : 0);
	else
		agent_task_cancel(&r->apply);
	if (file)
		files_apply(r->agent, offline);
	agent_changed(r->agent);
}

// ---- which policy -------------------------------------------------------------------------------

// Without a readable record no feed is followed; then `weir status` has an alarm.
void reapply_look(struct reapply *r)
{
	CLEANUP_IN_EFFECT struct in_effect *e = in_effect_new();
	const struct plan_now now = plan_now();
	const char *instance = r->agent->instance;

	if (in_effect_find(instance, e, NULL) ||
	    !again_plan_look(&r->plan, e->about.revision, e->trial))
		return;
	inputs_free(&r->inputs);
	if (r->plan.revision[0] && !revisions_load_known(instance, r->plan.revision, false,
							 &e->record, &e->revision, NULL)) {
		inputs_read_feeds(e->revision.path, &e->record.reader, &r->inputs);
		r->inputs.places = e->record.geos.n;
	}
	again_plan_read(&r->plan, r->inputs.places, &now);
	follow_plan(r);
}

const struct inputs *reapply_inputs(const struct reapply *r)
{
	return &r->inputs;
}

bool reapply_has(const struct reapply *r, const char *url)
{
	vec_each (&r->inputs.feeds, feed)
		if (!strcmp(feed->url.url, url))
			return true;
	return false;
}

// ---- applying it --------------------------------------------------------------------------------

static void fail(struct reapply *r, const struct err *why, const char *active)
{
	const struct plan_now now = plan_now();

	if (again_plan_failed(&r->plan, why->text, active, &now))
		applies_count(r->agent, APPLIES_AGAIN, false);
	follow_plan(r);
}

// The active policy, unless it is a trial; NULL: not known.
static const char *find_active(const struct reapply *r, struct in_effect *e)
{
	return in_effect_find(r->agent->instance, e, NULL) || e->trial ? NULL : e->about.revision;
}

static bool has_warnings(const struct process_result *result)
{
	return json_length(json_get(result->document, "diagnostics")) ||
	       json_length(json_get(result->document, "warnings"));
}

// A warning is new here: a database has changed.
static void succeed(struct reapply *r, const struct process_result *result)
{
	const struct plan_now now = plan_now();

	applies_log(r->agent, result, has_warnings(result));
	applies_count(r->agent, APPLIES_AGAIN, true);
	again_plan_succeeded(&r->plan, r->agent->refused.why, &now);
	follow_plan(r);
}

static void on_end(void *ctx, const struct process_result *result)
{
	CLEANUP_IN_EFFECT struct in_effect *e = in_effect_new();
	struct reapply *r = ctx;
	struct err why = {0};

	r->child = NULL;
	if (!result->status) {
		succeed(r, result);
		return;
	}
	process_failure(result, "weir apply --again", &why);
	fail(r, &why, find_active(r, e));
}

static int apply(void *ctx, struct err *err)
{
	static const char *const args[] = {"-j", "apply", "--again", "--offline", NULL};
	struct reapply *r = ctx;
	const struct again_plan *p = &r->plan;
	CLEANUP_FREE char *by = p->feed ? mem_printf("agent (feed %s)", p->feed)
					: mem_printf("agent (%s)", p->changed);
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.by = by,
		.tells = true,
		.done = on_end,
		.ctx = r,
	};
	struct err why = {0};

	if (again_plan_begin(&r->plan) && process_start(r->agent, &request, &r->child, &why))
		fail(r, &why, NULL);
	return 0;
}

void reapply_soon(struct reapply *r, const char *url)
{
	CLEANUP_FREE char *feed = feed_public_url(url);
	const struct plan_now now = plan_now();

	again_plan_feed(&r->plan, feed, &now);
	follow_plan(r);
}

void reapply_report(const struct reapply *r, struct json *problems)
{
	trouble_report(&r->plan.trouble, NULL, problems);
}

// ---- databases ----------------------------------------------------------------------------------

static void on_databases(void *ctx)
{
	const struct plan_now now = plan_now();
	struct reapply *r = ctx;

	again_plan_databases(&r->plan, &now);
	follow_plan(r);
}

void reapply_watch(struct reapply *r)
{
	CLEANUP(watches_paths_free) struct watches_paths paths = {0};
	CLEANUP(geo_paths_free) struct geo_paths databases = {0};
	const struct inputs *file = files_inputs(r->agent);
	bool watching = r->inputs.places || (file && file->places);

	if (watching == r->watching)
		return;
	r->watching = watching;
	if (watching)
		geo_db_patterns(&databases);
	vec_each (&databases.paths, path)
		vec_push(&paths.all, TAKE_PTR(*path));
	databases.paths.n = 0;
	watches_set(r->databases, &paths);
}

// ---- start and end ------------------------------------------------------------------------------

int reapply_new(struct agent *a, struct reapply **ret, struct err *err)
{
	struct reapply *r = *ret = mem_new(struct reapply);

	r->agent = a;
	agent_task_init(&r->apply, a, "apply of the active policy", apply, r);
	return watches_new(a, on_databases, r, &r->databases, err);
}

void reapply_free(struct reapply *r)
{
	if (!r)
		return;
	process_stop(r->child);
	watches_free(r->databases);
	agent_task_free(&r->apply);
	again_plan_free(&r->plan);
	inputs_free(&r->inputs);
	free(r);
}
