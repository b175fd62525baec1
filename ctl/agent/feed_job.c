// SPDX-License-Identifier: GPL-2.0-only
// The received text, and its processing.
#include "ctl/agent/feed_job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/files.h"
#include "ctl/agent/hooks.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"

enum {
	JITTER_PERCENT = 10,
	RETRY_FIRST_MS = 10000, // after a failure, doubled up to `every`
	SOON_MS = 100,          // for one without a copy
	OUTPUT_MAX = 256 << 20, // for a command: its document has all invalid lines
};

// ---- when ---------------------------------------------------------------------------------------

// Up to a tenth earlier, so that many hosts do not come at once.
static uint64_t jittered(uint64_t ms)
{
	uint32_t random = 0;
	ssize_t n = getrandom(&random, sizeof(random), GRND_NONBLOCK);

	return n == sizeof(random) ? ms - ms * JITTER_PERCENT / 100 * random / UINT32_MAX : ms;
}

static void fetch_in(struct feed_job *job, uint64_t ms)
{
	job->next_s = (uint64_t)time(NULL) + ms / 1000;
	agent_task_move(&job->request, ms);
}

// ---- the response -------------------------------------------------------------------------------

static void tell(const struct feed_job *job, const char *from, const char *to, const char *why)
{
	CLEANUP_FREE char *url = feed_public_url(job->url.url);

	hooks_tell(job->agent, &(struct hook_event){"feed", url, from, to, why});
}

static void succeed(struct feed_job *job)
{
	if (trouble_end(&job->trouble)) {
		log_notice("'%s' is good again", job->url.url);
		tell(job, "failing", "ok", NULL);
	}
	job->good_s = (uint64_t)time(NULL);
	fetch_in(job, jittered(job->url.every_ms));
}

// The state after a failure.
static const char *what_stays(const struct feed_job *job)
{
	return job->list.for_ms ? "the entries of its last good text stay until their ends"
				: "the last good text stays in use";
}

// The texts of one failure differ in times, bytes and entries.
static void fail(struct feed_job *job, const struct err *err)
{
	err_full_text full;

	if (!job->trouble.times)
		tell(job, "ok", "failing", err->text);
	if (trouble_begin_like(&job->trouble, err->text))
		log_warning("%s; %s", err_full(err, full), what_stays(job));
	fetch_in(job,
		 jittered(trouble_pause_ms(job->trouble.times, RETRY_FIRST_MS, job->url.every_ms)));
}

// The text is bad, or cannot be used now.
static void refuse_text(struct feed_job *job, const struct err *err)
{
	feed_free(&job->coming);
	fail(job, err);
	agent_changed(job->agent);
}

static void work(struct feed_job *job, int (*run)(void *, struct text *, struct err *),
		 void (*done)(void *, const struct process_result *))
{
	const struct process_request request = {.run = run, .done = done, .ctx = job};
	struct err err = {0};

	if (process_start(job->agent, &request, &job->worker, &err))
		refuse_text(job, &err);
}

// The findings of a worker in a text.
struct findings {
	uint64_t entries;
	bool same;  // the text is the copy on disk already
	bool plain; // it has neither ends nor names
};

static void put(struct text *output, const struct findings *f)
{
	text_addn(output, (const char *)f, sizeof(*f));
}

// True: the worker has succeeded.
static bool take_findings(struct feed_job *job, const struct process_result *r,
			  struct findings *ret)
{
	*ret = (struct findings){0};
	job->worker = NULL;
	process_take(r, ret, sizeof(*ret));
	return !r->status;
}

// The text is now the copy on disk; the state here does not include it.
static void keep_head(struct feed_job *job)
{
	feed_free(&job->copy);
	job->copy = job->coming;
	free(TAKE_PTR(job->copy.text));
	job->coming = (struct feed){0};
	job->copy_time = feed_time(job->agent->instance, job->key);
}

// A server without ETag and Last-Modified sends the same text again.
static bool is_copy(const struct feed_job *job)
{
	CLEANUP_FEED struct feed copy = {0};

	if (job->coming.len != job->copy.len ||
	    feed_load(job->agent->instance, job->key, &copy, NULL))
		return false;
	return copy.len == job->coming.len && !memcmp(copy.text, job->coming.text, copy.len);
}

static void take_same(struct feed_job *job)
{
	feed_free(&job->coming);
	succeed(job);
	agent_changed(job->agent);
}

// ---- the text of a policy's feed ----------------------------------------------------------------

// A file that could not be applied yet may have waited for this feed.
static void use_copy(const struct feed_job *job)
{
	if (reapply_has(job->policy, job->key))
		reapply_soon(job->policy, job->url.url);
	else
		files_apply(job->agent, true);
}

static int judge_and_save(void *ctx, struct text *output, struct err *err)
{
	struct feed_job *job = ctx;
	struct feed *text = &job->coming;
	struct findings found;
	int code = feed_check_lines(&job->url, text->text, text->len, &text->entries, err);

	if (code)
		return code;
	if ((code = feed_check(&job->url, text->text, text->len, &job->copy, false, err)))
		return code;
	found = (struct findings){.entries = text->entries, .same = is_copy(job)};
	put(output, &found);
	return found.same ? 0 : feed_save(job->agent->instance, text, err);
}

static void on_saved(void *ctx, const struct process_result *r)
{
	struct feed_job *job = ctx;
	struct findings found;

	if (!take_findings(job, r, &found)) {
		refuse_text(job, &r->err);
		return;
	}
	if (found.same) {
		take_same(job);
		return;
	}
	job->coming.entries = found.entries;
	keep_head(job);
	log_notice("'%s' has changed", job->url.url);
	succeed(job);
	use_copy(job);
	agent_changed(job->agent);
}

// ---- the text of a list -------------------------------------------------------------------------

// Why the command has failed: the first invalid line, with the URL for the file that it has read.
static void refuse_list(struct feed_job *job, const struct process_result *r)
{
	const struct json *bad = json_at(json_get(r->document, "errors"), 0);
	const char *text = json_get_string(bad, "text");
	struct err err = {0}, line = {0};

	process_failure(r, "weir block --sync", &err);
	if (!text) {
		err_prefix(&err, "'%s'", job->url.url);
		refuse_text(job, &err);
		return;
	}
	err_input(&line, "'%s' line %llu: %s", job->url.url,
		  (unsigned long long)json_get_u64(bad, "line"), text);
	line.kind = err.kind;
	refuse_text(job, &line);
}

static int save(void *ctx, struct text *output, struct err *err)
{
	struct feed_job *job = ctx;
	CLEANUP_FREE char *path = feed_path(job->agent->instance, job->key, ".new");

	unlink(path);
	return feed_save(job->agent->instance, &job->coming, err);
}

static void on_kept(void *ctx, const struct process_result *r)
{
	struct feed_job *job = ctx;

	job->worker = NULL;
	if (r->status) {
		refuse_text(job, &r->err);
		return;
	}
	keep_head(job);
	job->plain_time = job->plain ? job->copy_time : 0;
	succeed(job);
	agent_changed(job->agent);
}

static void on_changed(void *ctx, const struct process_result *r)
{
	struct feed_job *job = ctx;
	bool changed = json_get_u64(r->document, "added") || json_get_u64(r->document, "removed");
	CLEANUP_FREE char *path = feed_path(job->agent->instance, job->key, ".new");

	job->child = NULL;
	if (r->status) {
		unlink(path);
		refuse_list(job, r);
		return;
	}
	process_log(r, false,
		    changed ? log_notice : log_info); // entries whose ends are renewed are usual
	if (job->coming.url) {
		work(job, save, on_kept);
		return;
	}
	unlink(path);
	take_same(job);
}

// The command that replaces the list by the text; it refuses as any command does.
static int start_change(struct feed_job *job, const char *path, struct err *err)
{
	const char *args[1 + FEED_LIST_WORDS + 1] = {"-j"};
	CLEANUP_FREE char *url = feed_public_url(job->url.url);
	CLEANUP_FREE char *by = mem_printf("agent (feed %s)", url);
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.by = by,
		.tells = true,
		.done = on_changed,
		.ctx = job,
	};
	feed_list_time time;

	feed_list_words(&job->list, path, time, args + 1);
	return process_start(job->agent, &request, &job->child, err);
}

// The same text again changes nothing.
static bool is_plain(const struct feed_job *job)
{
	return !job->list.for_ms && job->copy_time && job->plain_time == job->copy_time;
}

// The input of the command. Without a new text, the server has reported that the copy is current.
static int write_text(void *ctx, struct text *output, struct err *err)
{
	struct feed_job *job = ctx;
	const char *instance = job->agent->instance;
	CLEANUP_FREE char *path = feed_path(instance, job->key, ".new");
	CLEANUP_FEED struct feed copy = {0};
	struct findings found = {.same = !job->coming.url || is_copy(job), .plain = true};
	const struct feed *text = found.same ? &copy : &job->coming;
	int code = 0;

	if (found.same && is_plain(job)) {
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

// A copy that cannot be read is not asked for as "if changed since" again.
static void refuse_written(struct feed_job *job, const struct err *err)
{
	if (!job->coming.url) {
		feed_free(&job->copy);
		job->copy_time = 0;
	}
	refuse_text(job, err);
}

static void on_written(void *ctx, const struct process_result *r)
{
	struct feed_job *job = ctx;
	CLEANUP_FREE char *path = feed_path(job->agent->instance, job->key, ".new");
	struct err why = r->err;
	struct findings found;

	if (!take_findings(job, r, &found)) {
		refuse_written(job, &why);
		return;
	}
	job->plain = found.plain;
	if (found.same && job->plain) {
		job->plain_time = job->copy_time;
		take_same(job);
		return;
	}
	if (found.same)
		feed_free(&job->coming);
	else
		job->coming.entries = found.entries;
	if (start_change(job, path, &why))
		refuse_text(job, &why);
}

// ---- fetching -----------------------------------------------------------------------------------

static void on_fetched(void *ctx, struct fetch_result *r)
{
	struct feed_job *job = ctx;

	job->fetch = NULL;
	if (r->code) {
		fail(job, &r->err);
	} else if (r->same && (!job->list.list || is_plain(job))) {
		succeed(job);
	} else {
		if (!r->same)
			job->coming = feed_of(job->key, r, 0);
		work(job, job->list.list ? write_text : judge_and_save,
		     job->list.list ? on_written : on_saved);
	}
	fetch_result_free(r);
	agent_changed(job->agent);
}

// The copy may be another one since: a command has fetched, too.
static void read_copy(struct feed_job *job)
{
	const char *instance = job->agent->instance;
	uint64_t time = feed_time(instance, job->key);

	if (time == job->copy_time)
		return;
	feed_free(&job->copy);
	feed_load(instance, job->key, &job->copy, NULL);
	free(TAKE_PTR(job->copy.text));
	job->copy_time = time;
}

static int start_fetch(void *ctx, struct err *err)
{
	struct feed_job *job = ctx;
	struct fetch_request request;
	struct err why = {0};

	if (job->fetch || job->worker || job->child)
		return 0;
	read_copy(job);
	request = feed_request(&job->url, &job->copy, job->agent->dns);
	if (fetch_start(job->loop, &request, on_fetched, job, &job->fetch, &why))
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

void feed_job_free(struct feed_job *job)
{
	fetch_cancel(job->fetch);
	process_stop(job->worker);
	process_stop(job->child);
	agent_task_free(&job->request);
	trouble_end(&job->trouble);
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
	job->url.url = copy_of(url->url);
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

struct feed_job *feed_job_new(struct agent *a, struct curl_loop *loop, struct reapply *policy,
			      const char *key)
{
	struct feed_job *job = mem_new(struct feed_job);

	*job = (struct feed_job){
		.agent = a, .loop = loop, .policy = policy, .key = mem_strdup(key)};
	agent_task_init(&job->request, a, "request of a feed", start_fetch, job);
	return job;
}

void feed_job_follow(struct feed_job *job, const struct policy_url *url)
{
	if (job->url.url && same_url(&job->url, url))
		return;
	set_url(job, url);
	read_copy(job);
	fetch_in(job, job->copy.url ? jittered(url->every_ms) : SOON_MS);
}

void feed_job_take_list(struct feed_job *job, struct feed_list *list)
{
	feed_list_free(&job->list);
	job->list = *list;
	*list = (struct feed_list){0};
}

void feed_job_fetch_soon(struct feed_job *job, bool at_once)
{
	if (at_once)
		fetch_cancel(TAKE_PTR(job->fetch));
	fetch_in(job, at_once ? 0 : SOON_MS);
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

void feed_job_report(const struct feed_job *job, struct json *feeds, struct json *problems)
{
	struct json *one = json_object();

	json_set(one, "url", json_string(job->url.url));
	report_identity(job, one);
	json_set(one, "list", job->list.list ? json_string(job->list.list) : json_nothing());
	json_set(one, "every_s", json_u64(job->url.every_ms / 1000));
	json_set(one, "entries", json_u64(job->copy.entries));
	json_set(one, "changed_s", json_u64(job->copy.fetched_s));
	if (job->good_s || job->copy.fetched_s)
		json_set(one, "good_s",
			 json_u64(job->good_s > job->copy.fetched_s ? job->good_s
								    : job->copy.fetched_s));
	json_set(one, "next_s", json_u64(job->next_s));
	json_set(one, "failures", json_u64(job->trouble.times));
	json_append(feeds, one);
	trouble_report(&job->trouble, NULL, problems);
}
