// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that reads events: one `weir watch` of the packets that rules log, always,
// and one of drops while a client wants them, or with --keep-drops. Their documents go to all
// clients of /v1/events; the last 1,000 are kept.
#include "ctl/agent/events.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/history_plan.h"
#include "ctl/agent/listeners.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define AFTER_COMMAND_MS 200 // an attach may have made the instance
#define AGAIN_FIRST_MS   1000
#define AGAIN_MOST_MS    60000
#define LINE_MAX_BYTES   (1u << 16) // a longer document is skipped
#define KEPT             LISTENER_QUEUE
#define MOMENT           "\"monotonic_us\":"

enum events_kind { LOGGED, DROPS, SOURCES };
static const char *const words[] = {[LOGGED] = "logged", [DROPS] = "drops"};

struct events_source {
	struct events_part *part;
	enum events_kind which;
	struct agent_process *watch; // NULL: does not run
	struct history_lines lines;
	struct text ready; // lines of a piece of output
	size_t n;          // events in it
	char *why;         // the error that `weir watch` has ended with
	struct trouble trouble;
	uint64_t again_ms; // monotonic; not before
	uint64_t last_us;  // moment of the last event
};

struct kept_event {
	char *line;
	uint64_t us;
	enum events_kind which;
};

struct events_part {
	struct agent *agent;
	struct events_source sources[SOURCES];
	struct listeners *listeners;
	struct kept_event kept[KEPT];
	size_t next;    // place of the next one
	ino_t instance; // inode of its folder: another one is another instance
	struct agent_task look;
};

// ---- documents ----------------------------------------------------------------------------------

static void keep(struct events_source *s, const struct text *line, uint64_t us)
{
	struct kept_event *at = &s->part->kept[s->part->next];

	free(at->line);
	*at = (struct kept_event){.line = mem_strdup(text_get(line)), .us = us, .which = s->which};
	s->part->next = (s->part->next + 1) % KEPT;
}

// The moment precedes all texts from outside. 0: this is no event.
static uint64_t moment_of(const char *line)
{
	const char *at = strstr(line, MOMENT);
	size_t len;
	uint64_t us;

	if (!at)
		return 0;
	at += strlen(MOMENT);
	len = strspn(at, "0123456789");
	return num_parse_u64(at, len, 1, UINT64_MAX, &us) ? 0 : us;
}

static void take_line(struct events_source *s)
{
	const char *line = text_get(&s->lines.line);
	uint64_t us = moment_of(line);
	CLEANUP_JSON struct json *document = NULL;
	const char *why;

	if (us > s->last_us) {
		s->last_us = us;
		text_add(&s->ready, line);
		s->n++;
		keep(s, &s->lines.line, us);
	}
	if (us) // a `weir watch` that begins again has the records that are kept
		return;
	document = json_parse(s->lines.line.at, s->lines.line.len, NULL, 0);
	why = json_get_string(json_get(document, "error"), "text");
	if (why) {
		free(s->why);
		s->why = mem_strdup(why);
	}
}

static void publish(struct events_source *s)
{
	const struct event_lines lines = {.at = text_get(&s->ready),
					  .len = s->ready.len,
					  .n = s->n,
					  .logged = s->which == LOGGED};

	if (!s->n)
		return;
	if (trouble_end(&s->trouble)) {
		log_notice("%s are read again", s->which == LOGGED ? "logged packets" : "drops");
		agent_changed(s->part->agent);
	}
	listeners_publish(s->part->listeners, &lines);
	s->ready.len = 0;
	s->n = 0;
}

static void on_part(void *source, const char *output, size_t len)
{
	struct events_source *s = source;

	while (len)
		if (history_lines_take(&s->lines, LINE_MAX_BYTES, &output, &len) ==
		    HISTORY_LINE_WHOLE)
			take_line(s);
	publish(s);
}

// ---- weir watch ---------------------------------------------------------------------------------

static void forget_output(struct events_source *s)
{
	history_lines_forget(&s->lines);
	s->ready.len = 0;
	s->n = 0;
}

static void on_done(void *source, const struct process_result *r)
{
	struct events_source *s = source;
	struct agent *a = s->part->agent;
	CLEANUP_FREE char *why = TAKE_PTR(s->why);
	uint64_t pause_ms;

	s->watch = NULL;
	forget_output(s);
	if (bpffs_exist(a->instance) &&
	    trouble_begin_like(&s->trouble, why ? why : "weir watch was killed, or has crashed")) {
		log_warning("%s are not read: %s", s->which == LOGGED ? "logged packets" : "drops",
			    s->trouble.why);
		agent_changed(a);
	}
	pause_ms = trouble_pause_ms(s->trouble.times, AGAIN_FIRST_MS, AGAIN_MOST_MS);
	s->again_ms = agent_now_ms() + pause_ms;
	agent_task_in(&s->part->look, pause_ms);
}

static int start_watch(struct events_source *s, struct err *err)
{
	const char *const args[] = {"-j", "watch", words[s->which], NULL};
	const struct process_request request = {
		.args = args,
		.modest = true,
		.silent = true, // what fails is in the document
		.plain = true,
		.part = on_part,
		.done = on_done,
		.ctx = s,
	};

	return process_start(s->part->agent, &request, &s->watch, err);
}

static void stop_watch(struct events_source *s)
{
	process_stop(TAKE_PTR(s->watch));
	forget_output(s);
	trouble_end(&s->trouble);
}

static bool is_wanted(const struct events_source *s)
{
	return s->which == LOGGED || s->part->agent->keeps_drops ||
	       listeners_of_drops(s->part->listeners);
}

// A command that holds the lock may be making or removing the instance: -EAGAIN. *ret_folder 0: it
// does not exist.
static int find_instance(const struct events_part *p, ino_t *ret_folder, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf(BPFFS_ROOT "/%s", p->agent->instance);
	CLEANUP_FD int lock = -1;
	struct stat st = {0};
	int code = lock_share(p->agent->instance, &lock, err);

	if (code)
		return code;
	*ret_folder = bpffs_exist(p->agent->instance) && !stat(path, &st) ? st.st_ino : 0;
	return 0;
}

static int look_at(struct events_source *s, bool exists, struct err *err)
{
	uint64_t now_ms = agent_now_ms();
	bool wanted = exists && is_wanted(s);

	if (!wanted)
		stop_watch(s);
	if (s->watch || !wanted)
		return 0;
	if (now_ms >= s->again_ms)
		return start_watch(s, err);
	agent_task_in(&s->part->look, s->again_ms - now_ms);
	return 0;
}

static int look(void *part, struct err *err)
{
	struct events_part *p = part;
	ino_t folder = 0;
	int code = find_instance(p, &folder, err);

	if (code)
		return code;
	for (enum events_kind n = 0; n < SOURCES; n++)
		if (folder != p->instance)
			stop_watch(&p->sources[n]);
	p->instance = folder;
	for (enum events_kind n = 0; n < SOURCES; n++)
		if ((code = look_at(&p->sources[n], folder, err)))
			return code;
	if (p->sources[DROPS].watch && !p->agent->keeps_drops)
		agent_task_in(&p->look, AGAIN_FIRST_MS); // until its last client has left
	return 0;
}

// ---- requests -----------------------------------------------------------------------------------

struct events_query {
	bool logged;
	uint64_t count, since_ms; // 0: without
	struct err err;
	int code;
};

static bool takes_wish(struct events_query *w, const char *key, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (!strcmp(key, "logged") && !text) {
		w->logged = true;
		return true;
	}
	if (!strcmp(key, "count") && text)
		return !num_parse_count(text, len, 1, UINT32_MAX, &w->count);
	return !strcmp(key, "since") && text &&
	       !num_parse_time_ms(text, len, 1, UINT32_MAX, &w->since_ms);
}

static void read_wish(void *query, const char *key, const struct json *value)
{
	struct events_query *w = query;
	const char *text = json_kind(value) == JSON_IS_STRING ? json_text(value) : NULL;

	if (!w->code && !takes_wish(w, key, text))
		w->code = err_input(&w->err, API_EVENTS " has no query but 'count' (1 or more), "
							"'logged' and 'since' (such as 10m)");
}

// The events of this time that are kept.
static void send_kept(const struct events_part *p, const struct events_query *w)
{
	uint64_t from_us = agent_now_ms() > w->since_ms ? (agent_now_ms() - w->since_ms) * 1000 : 0;
	CLEANUP_TEXT struct text all = {0};
	struct event_lines lines = {.logged = true};

	for (size_t n = 0; n < KEPT; n++) {
		const struct kept_event *e = &p->kept[(p->next + n) % KEPT];

		if (!e->line || e->us < from_us || (w->logged && e->which == DROPS))
			continue;
		text_add(&all, e->line);
		lines.n++;
	}
	lines.at = text_get(&all);
	lines.len = all.len;
	if (lines.n)
		listeners_begin(p->listeners, &lines);
}

void events_answer(struct agent *a, struct evhttp_request *request, const struct json *query)
{
	struct events_part *p = a->events;
	struct events_query w = {0};

	json_each(query, read_wish, &w);
	if (w.code) {
		api_refuse(request, HTTP_BADREQUEST, w.err.text);
		return;
	}
	if (!listeners_add(p->listeners, request, !w.logged, w.count))
		return;
	if (w.since_ms)
		send_kept(p, &w);
	agent_task_in(&p->look, 0);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct events_part *p = mem_new(struct events_part);

	p->agent = a;
	a->events = p;
	p->listeners = listeners_new();
	for (enum events_kind n = 0; n < SOURCES; n++) {
		p->sources[n].part = p;
		p->sources[n].which = n;
	}
	agent_task_init(&p->look, a, "events", look, p);
	agent_after_command(a, &p->look, AFTER_COMMAND_MS);
	agent_task_in(&p->look, 0);
	return 0;
}

static void stop(struct agent *a)
{
	struct events_part *p = TAKE_PTR(a->events);

	if (!p)
		return;
	for (enum events_kind n = 0; n < SOURCES; n++) {
		stop_watch(&p->sources[n]);
		text_free(&p->sources[n].lines.line);
		text_free(&p->sources[n].ready);
		free(p->sources[n].why);
	}
	agent_task_free(&p->look);
	listeners_free(p->listeners);
	for (size_t n = 0; n < KEPT; n++)
		free(p->kept[n].line);
	free(p);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct events_part *p = a->events;

	trouble_report(&p->sources[LOGGED].trouble, "logged packets are not read", problems);
	trouble_report(&p->sources[DROPS].trouble, "drops are not read", problems);
	agent_task_report(&p->look, problems);
	json_set(fields, "drops", json_bool(p->sources[DROPS].watch));
}

const struct agent_part agent_events = {
	.name = "events",
	.start = start,
	.stop = stop,
	.report = report,
};
