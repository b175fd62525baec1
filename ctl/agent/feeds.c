// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for feeds: which ones the active policy, the policy file and the lists
// have. Each is a job (feed_job.h).
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/feed_job.h"
#include "ctl/agent/files.h"
#include "ctl/agent/inputs.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/lock.h"

#define AFTER_COMMAND_MS 100 // which then waits for the end of the command

struct feeds_part {
	struct agent *agent;
	struct curl_loop *loop;
	struct agent_task look; // which lists, and which policy, follow feeds
	VEC(struct feed_job *) jobs;
	struct reapply *policy; // the active one
	bool looked;
};

// ---- jobs ---------------------------------------------------------------------------------------

static struct feed_job *find(const struct feeds_part *part, const char *key)
{
	vec_each (&part->jobs, job)
		if (!strcmp((*job)->key, key))
			return *job;
	return NULL;
}

static struct feed_job *follow(struct feeds_part *part, const char *key,
			       const struct policy_url *url)
{
	struct feed_job *job = find(part, key);

	if (!job) {
		job = feed_job_new(part->agent, part->loop, part->policy, key);
		vec_push(&part->jobs, job);
	}
	job->wanted = true;
	feed_job_follow(job, url);
	return job;
}

static void follow_list(struct feeds_part *part, struct feed_list *l)
{
	const struct policy_url url = {
		.url = l->url, .ca = l->ca, .every_ms = l->every_ms, .wide = l->wide};
	CLEANUP_FREE char *key = feed_list_key(l);
	struct feed_job *job = follow(part, key, &url);

	feed_job_take_list(job, l);
	if (!part->looked && job->list.for_ms) // who knows when they were renewed
		feed_job_fetch_soon(job, false);
}

static void follow_lists(struct feeds_part *part)
{
	CLEANUP_FEED_LISTS struct feed_lists lists = {0};

	feed_lists_read(part->agent->instance, &lists);
	vec_each (&lists, one)
		follow_list(part, one);
}

static void drop_unwanted(struct feeds_part *part)
{
	size_t kept = 0;

	vec_each (&part->jobs, job) {
		if ((*job)->wanted)
			part->jobs.at[kept++] = *job;
		else
			feed_job_free(*job);
	}
	part->jobs.n = kept;
}

static void follow_all(struct agent *a)
{
	const struct inputs *inputs = files_inputs(a);
	struct feeds_part *part = a->feeds;

	if (!part)
		return;
	vec_each (&part->jobs, job)
		(*job)->wanted = false;
	vec_each (&reapply_inputs(part->policy)->feeds, feed)
		follow(part, feed->url.url, &feed->url);
	for (size_t n = 0; inputs && n < inputs->feeds.n; n++)
		if (!reapply_has(part->policy, inputs->feeds.at[n].url.url))
			follow(part, inputs->feeds.at[n].url.url, &inputs->feeds.at[n].url);
	follow_lists(part);
	drop_unwanted(part);
	reapply_watch(part->policy);
}

static void on_inputs(struct agent *a, bool applied)
{
	if (applied)
		follow_all(a);
	else if (a->feeds)
		reapply_watch(a->feeds->policy);
}

static int look(void *ctx, struct err *err)
{
	struct feeds_part *part = ctx;
	CLEANUP_FD int lock = -1;
	int code = lock_share(part->agent->instance, &lock, err);

	if (code)
		return code;
	reapply_look(part->policy);
	follow_all(part->agent);
	part->looked = true;
	agent_changed(part->agent);
	return 0;
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	int code;

	a->feeds = mem_new(struct feeds_part);
	a->feeds->agent = a;
	if ((code = reapply_new(a, &a->feeds->policy, err)))
		return code;
	agent_task_init(&a->feeds->look, a, "look at feeds", look, a->feeds);
	a->inputs_changed = on_inputs;
	agent_after_command(a, &a->feeds->look, AFTER_COMMAND_MS);
	agent_task_in(&a->feeds->look, 0);
	return curl_loop_new(a->loop, &a->feeds->loop, err);
}

static void stop(struct agent *a)
{
	if (!a->feeds)
		return;
	a->inputs_changed = NULL;
	vec_each (&a->feeds->jobs, job)
		feed_job_free(*job);
	vec_free(&a->feeds->jobs);
	agent_task_free(&a->feeds->look);
	reapply_free(a->feeds->policy);
	curl_loop_free(a->feeds->loop);
	free(a->feeds);
	a->feeds = NULL;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	struct json *feeds = json_array();

	if (a->feeds)
		vec_each (&a->feeds->jobs, job)
			feed_job_report(*job, feeds, problems);
	if (a->feeds)
		reapply_report(a->feeds->policy, problems);
	json_set(fields, "feeds", feeds);
}

// Fetches failed feeds, and lists, immediately. The part `files` fetches the feeds of the policy,
// which it applies again.
static int reload(struct agent *a, struct err *err)
{
	vec_each (&a->feeds->jobs, job)
		if ((*job)->list.list || (*job)->trouble.why)
			feed_job_fetch_soon(*job, true);
	return 0;
}

const struct agent_part agent_feeds = {
	.name = "feeds",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
