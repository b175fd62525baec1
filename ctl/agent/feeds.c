// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for feeds of the active policy, of the policy file and of lists: carries
// out what their plans decide (feeds_plan.h).
//
// The loop only fetches: a text is read, judged and written by copies of the agent, and a list is
// changed by `weir block --sync` in a process of its own.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/feeds_plan.h"
#include "ctl/agent/files.h"
#include "ctl/agent/hooks.h"
#include "ctl/agent/inputs.h"
#include "ctl/agent/process.h"
#include "ctl/agent/reapply.h"
#include "ctl/agent/record.h"
#include "ctl/agent/task.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/control/feed_lists.h"
#include "ctl/control/feeds.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/curl_loop.h"

#define AFTER_COMMAND_MS 100         // which then waits for the end of the command
#define OUTPUT_MAX       (256 << 20) // for a command: its document has all invalid lines

struct feed_job {
	struct feeds_part *part;
	char *key;                   // name of its copy; for the policy: a URL
	struct feed_list list;       // that follows it; list.list NULL: the policy does
	struct policy_url url;       // its strings are owned
	struct fetch *fetch;         // one of these two at a time
	struct agent_process *child; // a worker, or the command
	struct feed coming;          // the fetched text
	struct feed copy;            // without its text
	struct agent_task request;
	struct feed_plan plan;
	bool wanted; // found in the policy, or among the lists
};

struct feeds_part {
	struct agent *agent;
	struct curl_loop *loop;
	struct agent_task look; // which lists, and which policy, follow feeds
	VEC(struct feed_job *) jobs;
	struct reapply *policy; // the active one
	bool looked;
	uint64_t random; // for the seeds of their plans
};

// ---- what the plan says -------------------------------------------------------------------------

static void tell(const struct feed_job *job, const char *from, const char *to, const char *why)
{
	CLEANUP_FREE char *url = feed_public_url(job->url.url);
	CLEANUP_FREE char *what = mem_printf("feed %s: %s", url, to);

	record_change(
		job->part->agent,
		&(struct record_change){.part = "feeds", .verb = "feed", .what = what, .why = why});
	hooks_tell(job->part->agent, &(struct hook_event){"feed", url, from, to, why});
}

// A file that could not be applied yet may have waited for this feed.
static void use_copy(const struct feed_job *job)
{
	if (reapply_has(job->part->policy, job->key))
		reapply_soon(job->part->policy, job->url.url);
	else
		files_apply(job->part->agent, true);
}

static void follow_plan(struct feed_job *job)
{
	const struct plan_now now = plan_now();
	struct feed_plan *p = &job->plan;

	plan_log(&p->messages);
	if (p->failing)
		tell(job, "ok", "failing", p->trouble.why);
	if (p->good)
		tell(job, "failing", "ok", NULL);
	if (p->changed)
		use_copy(job);
	p->failing = p->good = p->changed = false;
	if (p->step == FEED_WAITS)
		agent_task_move(&job->request, p->due_ms > now.ms ? p->due_ms - now.ms : 0);
	agent_changed(job->part->agent);
}

static void fail(struct feed_job *job, const struct err *err)
{
	const struct plan_now now = plan_now();
	err_full_text full;

	feed_free(&job->coming);
	feed_plan_failed(&job->plan, err->text, err_full(err, full), &now);
	if (!job->plan.copy_time)
		feed_free(&job->copy);
	follow_plan(job);
}

static void rest(struct feed_job *job)
{
	feed_free(&job->coming);
	follow_plan(job);
}

static void work(struct feed_job *job, int (*run)(void *, struct text *, struct err *),
		 void (*done)(void *, const struct process_result *))
{
	const struct process_request request = {.run = run, .done = done, .ctx = job};
	struct err err = {0};

	if (process_start(job->part->agent, &request, &job->child, &err))
		fail(job, &err);
}

// ---- the text -----------------------------------------------------------------------------------

static void put(struct text *output, const struct feed_found *f)
{
	text_addn(output, (const char *)f, sizeof(*f));
}

// The text is now the copy on disk; the state here does not include it.
static void keep_head(struct feed_job *job)
{
	feed_free(&job->copy);
	job->copy = job->coming;
	free(TAKE_PTR(job->copy.text));
	job->coming = (struct feed){0};
	job->plan.copy_time = feed_time(job->part->agent->instance, job->key);
}

// A server without ETag and Last-Modified sends the same text again.
static bool is_copy(const struct feed_job *job)
{
	CLEANUP_FEED struct feed copy = {0};

	if (job->coming.len != job->copy.len ||
	    feed_load(job->part->agent->instance, job->key, &copy, NULL))
		return false;
	return copy.len == job->coming.len && !memcmp(copy.text, job->coming.text, copy.len);
}

static int judge_and_save(void *ctx, struct text *output, struct err *err)
{
	struct feed_job *job = ctx;
	struct feed *text = &job->coming;
	struct feed_found found;
	int code = feed_check_lines(&job->url, text->text, text->len, &text->entries, err);

	if (code)
		return code;
	if ((code = feed_check(&job->url, text->text, text->len, &job->copy, false, err)))
		return code;
	found = (struct feed_found){.entries = text->entries, .same = is_copy(job)};
	put(output, &found);
	return found.same ? 0 : feed_save(job->part->agent->instance, text, err);
}

// The input of the command. Without a new text, the server has reported that the copy is current.
static int write_text(void *ctx, struct text *output, struct err *err)
{
	struct feed_job *job = ctx;
	const char *instance = job->part->agent->instance;
	CLEANUP_FREE char *path = feed_path(instance, job->key, ".new");
	CLEANUP_FEED struct feed copy = {0};
	struct feed_found found = {.same = !job->coming.url || is_copy(job), .plain = true};
	const struct feed *text = found.same ? &copy : &job->coming;
	int code = 0;

	if (found.same && feed_plan_is_plain(&job->plan)) {
		put(output, &found);
		return 0;
	}
	if (found.same && (code = feed_load(instance, job->key, &copy, err)))
		return code;
	found.entries = feed_list_entries(&job->list, text->text, text->len, &found.plain);
	put(output, &found);
	if (found.same && found.plain)
		return 0;
	return file_replace(path, text->text, text->len, 0600, err);
}

// ---- a list -------------------------------------------------------------------------------------

// Why the command has failed: the first invalid line, with the URL for the file that it has read.
static void refuse_list(struct feed_job *job, const struct process_result *r)
{
	const struct json *bad = json_at(json_get(r->document, "errors"), 0);
	const char *text = json_get_string(bad, "text");
	struct err err = {0}, line = {0};

	process_failure(r, "weir block --sync", &err);
	if (!text) {
		err_prefix(&err, "'%s'", job->url.url);
		fail(job, &err);
		return;
	}
	err_input(&line, "'%s' line %llu: %s", job->url.url,
		  (unsigned long long)json_get_u64(bad, "line"), text);
	line.kind = err.kind;
	fail(job, &line);
}

static int save(void *ctx, struct text *output, struct err *err)
{
	struct feed_job *job = ctx;
	CLEANUP_FREE char *path = feed_path(job->part->agent->instance, job->key, ".new");

	unlink(path);
	return feed_save(job->part->agent->instance, &job->coming, err);
}

static void on_saved(void *ctx, const struct process_result *r)
{
	const struct plan_now now = plan_now();
	struct feed_job *job = ctx;

	job->child = NULL;
	if (r->status) {
		fail(job, &r->err);
		return;
	}
	keep_head(job);
	feed_plan_saved(&job->plan, job->plan.copy_time, &now);
	rest(job);
}

static void on_listed(void *ctx, const struct process_result *r)
{
	bool changed = json_get_u64(r->document, "added") || json_get_u64(r->document, "removed");
	const struct plan_now now = plan_now();
	struct feed_job *job = ctx;
	CLEANUP_FREE char *path = feed_path(job->part->agent->instance, job->key, ".new");

	job->child = NULL;
	if (r->status) {
		unlink(path);
		refuse_list(job, r);
		return;
	}
	process_log(r, false,
		    changed ? log_notice : log_info); // entries whose ends are renewed are usual
	if (feed_plan_listed(&job->plan, &now) == FEED_SAVES) {
		work(job, save, on_saved);
		return;
	}
	unlink(path);
	rest(job);
}

// The command that replaces the list by the text; it refuses as any command does.
static void change_list(struct feed_job *job)
{
	const char *args[1 + FEED_LIST_WORDS + 1] = {"-j"};
	CLEANUP_FREE char *url = feed_public_url(job->url.url);
	CLEANUP_FREE char *by = mem_printf("agent (feed %s)", url);
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.by = by,
		.tells = true,
		.done = on_listed,
		.ctx = job,
	};
	CLEANUP_FREE char *path = feed_path(job->part->agent->instance, job->key, ".new");
	feed_list_time time;
	struct err err = {0};

	feed_list_words(&job->list, path, time, args + 1);
	if (process_start(job->part->agent, &request, &job->child, &err))
		fail(job, &err);
}

// ---- fetching -----------------------------------------------------------------------------------

static void on_read(void *ctx, const struct process_result *r)
{
	const struct plan_now now = plan_now();
	struct feed_job *job = ctx;
	struct feed_found found = {0};

	job->child = NULL;
	process_take(r, &found, sizeof(found));
	if (r->status) {
		fail(job, &r->err);
		return;
	}
	job->coming.entries = found.entries;
	if (!found.same && !job->list.list)
		keep_head(job);
	if (feed_plan_read(&job->plan, &found, &now) == FEED_CHANGES)
		change_list(job);
	else
		rest(job);
}

static void on_fetched(void *ctx, struct fetch_result *r)
{
	const struct plan_now now = plan_now();
	struct feed_job *job = ctx;

	job->fetch = NULL;
	if (r->code) {
		fail(job, &r->err);
	} else if (feed_plan_fetched(&job->plan, r->same, &now) == FEED_READS) {
		if (!r->same)
			job->coming = feed_of(job->key, r, 0);
		work(job, job->list.list ? write_text : judge_and_save, on_read);
	} else {
		rest(job);
	}
	fetch_result_free(r);
}

// The copy may be another one since: a command has fetched, too.
static void read_copy(struct feed_job *job)
{
	const char *instance = job->part->agent->instance;
	uint64_t time = feed_time(instance, job->key);

	if (time == job->plan.copy_time)
		return;
	feed_free(&job->copy);
	feed_load(instance, job->key, &job->copy, NULL);
	free(TAKE_PTR(job->copy.text));
	job->plan.copy_time = time;
}

static int start_fetch(void *ctx, struct err *err)
{
	struct feed_job *job = ctx;
	struct feeds_part *part = job->part;
	struct fetch_request request;
	struct err why = {0};

	if (!feed_plan_begin(&job->plan))
		return 0;
	read_copy(job);
	request = feed_request(&job->url, &job->copy, part->agent->dns);
	if (fetch_start(part->loop, &request, on_fetched, job, &job->fetch, &why))
		fail(job, &why);
	return 0;
}

// ---- a job --------------------------------------------------------------------------------------

static const char *copy_of(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static void free_url(struct policy_url *url)
{
	free((char *)url->url);
	free((char *)url->sha256);
	free((char *)url->ca);
}

static void free_job(struct feed_job *job)
{
	fetch_cancel(job->fetch);
	process_stop(job->child);
	agent_task_free(&job->request);
	feed_plan_free(&job->plan);
	feed_free(&job->copy);
	feed_free(&job->coming);
	feed_list_free(&job->list);
	free(job->key);
	free_url(&job->url);
	free(job);
}

static void set_url(struct feed_job *job, const struct policy_url *url)
{
	struct policy_url old = job->url;

	job->url = *url;
	job->url.url = job->plan.url = copy_of(url->url);
	job->url.sha256 = copy_of(url->sha256);
	job->url.ca = copy_of(url->ca);
	free_url(&old);
}

static bool same_url(const struct policy_url *a, const struct policy_url *b)
{
	return text_same(a->sha256, b->sha256) && text_same(a->ca, b->ca) &&
	       a->every_ms == b->every_ms && a->min == b->min && a->lax == b->lax &&
	       a->wide == b->wide;
}

static struct feed_job *new_job(struct feeds_part *part, const char *key)
{
	struct feed_job *job = mem_new(struct feed_job);

	*job = (struct feed_job){.part = part, .key = mem_strdup(key)};
	job->plan.random = plan_random_below(&part->random, UINT64_MAX) | 1;
	agent_task_init(&job->request, part->agent, "request of a feed", start_fetch, job);
	return job;
}

// By these rules from now on; the same ones change nothing.
static void follow_url(struct feed_job *job, const struct policy_url *url)
{
	const struct plan_now now = plan_now();

	if (job->url.url && same_url(&job->url, url))
		return;
	set_url(job, url);
	read_copy(job);
	feed_plan_follow(&job->plan, url->every_ms, job->copy.url, &now);
	follow_plan(job);
}

static void hurry(struct feed_job *job, bool at_once)
{
	const struct plan_now now = plan_now();

	if (at_once)
		fetch_cancel(TAKE_PTR(job->fetch));
	feed_plan_hurry(&job->plan, at_once, &now);
	follow_plan(job);
}

// For metrics, which others may read: the digest distinguishes feeds that differ only in the secret
// part.
static void report_identity(const struct feed_job *job, struct json *one)
{
	CLEANUP_FREE char *public = feed_public_url(job->url.url);
	sum_text id;

	sum_of(job->key, strlen(job->key), id);
	json_set(one, "public_url", json_string(public));
	json_set(one, "id", json_string(id));
}

static void report_job(const struct feed_job *job, struct json *feeds, struct json *problems)
{
	struct json *one = json_object();

	json_set(one, "url", json_string(job->url.url));
	report_identity(job, one);
	json_set(one, "list", job->list.list ? json_string(job->list.list) : json_nothing());
	json_set(one, "every_s", json_u64(job->url.every_ms / 1000));
	json_set(one, "entries", json_u64(job->copy.entries));
	json_set(one, "changed_s", json_u64(job->copy.fetched_s));
	if (job->plan.good_s || job->copy.fetched_s)
		json_set(one, "good_s",
			 json_u64(job->plan.good_s > job->copy.fetched_s ? job->plan.good_s
									 : job->copy.fetched_s));
	json_set(one, "next_s", json_u64(job->plan.due_s));
	json_set(one, "failures", json_u64(job->plan.trouble.times));
	json_append(feeds, one);
	trouble_report(&job->plan.trouble, NULL, problems);
}

// ---- which feeds --------------------------------------------------------------------------------

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
		job = new_job(part, key);
		vec_push(&part->jobs, job);
	}
	job->wanted = true;
	follow_url(job, url);
	return job;
}

static void follow_list(struct feeds_part *part, struct feed_list *l)
{
	const struct policy_url url = {
		.url = l->url, .ca = l->ca, .every_ms = l->every_ms, .wide = l->wide};
	CLEANUP_FREE char *key = feed_list_key(l);
	struct feed_job *job = follow(part, key, &url);

	feed_list_free(&job->list);
	job->list = *l;
	*l = (struct feed_list){0};
	job->plan.list = true;
	job->plan.ends = job->list.for_ms;
	if (!part->looked && job->list.for_ms) // who knows when they were renewed
		hurry(job, false);
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
			free_job(*job);
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
	if ((code = plan_random(&a->feeds->random, err)))
		return code;
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
		free_job(*job);
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
			report_job(*job, feeds, problems);
	if (a->feeds)
		reapply_report(a->feeds->policy, problems);
	json_set(fields, "feeds", feeds);
}

// Fetches failed feeds, and lists, immediately. The part `files` fetches the feeds of the policy,
// which it applies again.
static int reload(struct agent *a, struct err *err)
{
	vec_each (&a->feeds->jobs, job)
		if ((*job)->list.list || (*job)->plan.trouble.why)
			hurry(*job, true);
	return 0;
}

const struct agent_part agent_feeds = {
	.name = "feeds",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
