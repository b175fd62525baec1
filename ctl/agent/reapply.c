// SPDX-License-Identifier: GPL-2.0-only
// Applies the active policy from its record, by `weir apply --again` in a process of its own.
//
// The databases of countries and autonomous systems are watched here, also for the policy file: a
// change causes one apply, of the active policy unless only the file has countries.
#include "ctl/agent/reapply.h"

#include <errno.h>
#include <string.h>

#include "ctl/agent/applies.h"
#include "ctl/agent/files.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/agent/watches.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/active.h"
#include "ctl/control/feeds.h"
#include "ctl/net/geo_db.h"

#define AGAIN_FIRST_MS 10000 // after a failure, doubled up to
#define AGAIN_MOST_MS  600000
#define OTHER_MS       1000 // after another policy has come meanwhile
#define OUTPUT_MAX     (64u << 20)

struct reapply {
	struct agent *agent;
	char revision[REVISION_ID]; // the active one; "": none
	struct inputs inputs;       // its feeds and places
	bool looked;
	struct watches *databases;
	bool watching;
	const char *changed; // last: "feeds" or "databases"
	char *feed;          // the only one that has changed, without secrets; else NULL
	struct agent_process *child;
	char tried[REVISION_ID]; // active when the child began
	bool stale;              // something has changed since then
	struct agent_task apply;
	struct trouble trouble;
};

// ---- which policy -------------------------------------------------------------------------------

static void change(struct reapply *r, const char *what);

// During a trial nothing changes. Without a readable record no feed is followed; then `weir status`
// has an alarm.
void reapply_look(struct reapply *r)
{
	CLEANUP_IN_EFFECT struct in_effect *e = in_effect_new();
	const char *instance = r->agent->instance;

	if (in_effect_find(instance, e, NULL) || e->trial ||
	    !strcmp(e->about.revision, r->revision))
		return;
	memcpy(r->revision, e->about.revision, sizeof(r->revision));
	inputs_free(&r->inputs);
	if (r->revision[0] &&
	    !revisions_load_known(instance, r->revision, false, &e->record, &e->revision, NULL)) {
		inputs_read_feeds(e->revision.path, &e->record.reader, &r->inputs);
		r->inputs.places = e->record.geos.n;
	}
	if (!r->looked && r->inputs.places) // they may have changed while no agent ran
		change(r, "databases");
	r->looked = true;
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

static void fail(struct reapply *r, const struct err *failure)
{
	CLEANUP_FREE char *why =
		mem_printf("the %s of the policy have changed, but %s", r->changed, failure->text);

	if (trouble_begin_like(&r->trouble, why))
		log_error("%s; the active policy stays", why);
	applies_count(r->agent, APPLIES_AGAIN, false);
	agent_task_move(&r->apply,
			trouble_pause_ms(r->trouble.times, AGAIN_FIRST_MS, AGAIN_MOST_MS));
}

// Then the apply of the former one is refused, which is nothing to tell.
static bool other_has_come(const struct reapply *r)
{
	CLEANUP_IN_EFFECT struct in_effect *e = in_effect_new();

	return !in_effect_find(r->agent->instance, e, NULL) && !e->trial &&
	       strcmp(e->about.revision, r->tried) != 0;
}

static bool has_warnings(const struct process_result *result)
{
	return json_length(json_get(result->document, "diagnostics")) ||
	       json_length(json_get(result->document, "warnings"));
}

// A file that could not be applied may have waited for the same. A warning is new here: a database
// has changed.
static void succeed(struct reapply *r, const struct process_result *result)
{
	applies_log(r->agent, result, has_warnings(result));
	trouble_end(&r->trouble);
	applies_count(r->agent, APPLIES_AGAIN, true);
	if (r->stale)
		agent_task_move(&r->apply, 0);
	else if (r->agent->refused.why)
		files_apply(r->agent, true);
}

static void on_end(void *ctx, const struct process_result *result)
{
	struct reapply *r = ctx;
	struct err why = {0};

	r->child = NULL;
	if (result->status)
		process_failure(result, "weir apply --again", &why);
	if (!result->status)
		succeed(r, result);
	else if (other_has_come(r))
		agent_task_move(&r->apply, OTHER_MS);
	else
		fail(r, &why);
	agent_changed(r->agent);
}

static int apply(void *ctx, struct err *err)
{
	static const char *const args[] = {"-j", "apply", "--again", "--offline", NULL};
	struct reapply *r = ctx;
	CLEANUP_FREE char *by = r->feed ? mem_printf("agent (feed %s)", r->feed)
					: mem_printf("agent (%s)", r->changed);
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.by = by,
		.tells = true,
		.done = on_end,
		.ctx = r,
	};
	struct err why = {0};

	if (r->child)
		return 0;
	r->stale = false;
	memcpy(r->tried, r->revision, sizeof(r->tried));
	if (process_start(r->agent, &request, &r->child, &why))
		fail(r, &why);
	return 0;
}

static void change(struct reapply *r, const char *what)
{
	r->changed = what;
	r->stale = true;
	agent_task_move(&r->apply, 0);
}

void reapply_soon(struct reapply *r, const char *url)
{
	CLEANUP_FREE char *feed = feed_public_url(url), *before = TAKE_PTR(r->feed);
	bool others = r->stale || r->trouble.times;

	if (!others || (before && !strcmp(before, feed)))
		r->feed = TAKE_PTR(feed);
	change(r, "feeds");
}

void reapply_report(const struct reapply *r, struct json *problems)
{
	trouble_report(&r->trouble, NULL, problems);
}

// ---- databases ----------------------------------------------------------------------------------

static void on_databases(void *ctx)
{
	struct reapply *r = ctx;

	free(TAKE_PTR(r->feed));
	if (r->inputs.places)
		change(r, "databases");
	else
		files_apply(r->agent, false);
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
	trouble_end(&r->trouble);
	inputs_free(&r->inputs);
	free(r->feed);
	free(r);
}
