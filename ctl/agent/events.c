// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that reads events: one `weir watch` of the packets that rules log, always,
// one of drops while a client wants them, or with --keep-drops, and one `weir changes` while
// --events wants them. Their documents go to all listeners; the last 1,024 logged packets and drops
// are kept.
#include "ctl/agent/events.h"

#include <event2/http.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "ctl/agent/agent.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/history_plan.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define AFTER_COMMAND_MS 200 // an attach may have made the instance
#define AGAIN_FIRST_MS   1000
#define AGAIN_MOST_MS    60000
#define LINE_MAX_BYTES   (1u << 16) // a longer document is skipped
#define KEPT             WEIR_LOGS  // as many as the datapath keeps
#define FEW_WORDS        3
#define OVERLAP_MS       10000                        // a `weir changes` repeats so much
#define SINCE_MAX_MS     (3650ull * 24 * 3600 * 1000) // that `weir changes` accepts

// The commands that read events, the key with the moment in their documents, and how far back a
// command that begins again repeats events, in the unit of the moment. An older change is new: the
// clock was set back.
static const struct {
	const char *name, *moment;
	const char *words[FEW_WORDS];
	uint64_t repeats;
} kinds[EVENT_KINDS] = {
	[EVENT_LOGGED] =
		{"logged packets", "\"monotonic_us\":", {"-j", "watch", "logged"}, UINT64_MAX},
	[EVENT_DROP] = {"drops", "\"monotonic_us\":", {"-j", "watch", "drops"}, UINT64_MAX},
	[EVENT_CHANGE] = {"changes", "\"at_ms\":", {"-j", "changes", "--follow"}, OVERLAP_MS},
};

struct events_source {
	struct events_part *part;
	enum event_kind kind;
	struct agent_process *watch; // NULL: does not run
	struct history_lines lines;
	struct text ready; // lines of a piece of output
	size_t n;          // events in it
	bool old;          // they are older than the agent
	char *why;         // the error that the command has ended with
	struct trouble trouble;
	uint64_t again_ms; // monotonic; not before
	uint64_t last;     // moment of the latest event; changes: at first of the agent's start
	uint64_t skipped;  // a command that begins again repeats events up to this moment
};

struct kept_event {
	char *line;
	uint64_t us;
};

// The last events of a kind.
struct kept_events {
	struct kept_event at[KEPT];
	size_t next; // place of the next one
};

struct events_part {
	struct agent *agent;
	struct events_source sources[EVENT_KINDS];
	struct listeners *listeners;
	uint64_t start_us; // monotonic
	struct kept_events logged, drops;
	ino_t instance; // inode of its folder: another one is another instance
	struct agent_task look;
};

// ---- documents ----------------------------------------------------------------------------------

static struct kept_events *kept_of(struct events_source *s)
{
	return s->kind == EVENT_LOGGED ? &s->part->logged
	       : s->kind == EVENT_DROP ? &s->part->drops
				       : NULL;
}

static void keep(struct events_source *s, const struct text *line, uint64_t us)
{
	struct kept_events *all = kept_of(s);
	struct kept_event *at = all ? &all->at[all->next] : NULL;

	if (!at)
		return;
	free(at->line);
	*at = (struct kept_event){.line = mem_strdup(text_get(line)), .us = us};
	all->next = (all->next + 1) % KEPT;
}

// A text from outside cannot have the key: its quotes are escaped. 0: this is no event.
static uint64_t moment_of(const struct events_source *s, const char *line)
{
	const char *at = strstr(line, kinds[s->kind].moment);
	size_t len;
	uint64_t moment;

	if (!at)
		return 0;
	at += strlen(kinds[s->kind].moment);
	len = strspn(at, "0123456789");
	return num_parse_u64(at, len, 1, UINT64_MAX, &moment) ? 0 : moment;
}

static void publish(struct events_source *s)
{
	const struct event_lines lines = {.at = text_get(&s->ready),
					  .len = s->ready.len,
					  .n = s->n,
					  .kind = s->kind,
					  .old = s->old};

	if (!s->n)
		return;
	if (trouble_end(&s->trouble)) {
		log_notice("%s are read again", kinds[s->kind].name);
		agent_changed(s->part->agent);
	}
	listeners_publish(s->part->listeners, &lines);
	s->ready.len = 0;
	s->n = 0;
}

// No later, and as little earlier as a command may repeat.
static bool is_near(const struct events_source *s, uint64_t moment, uint64_t later)
{
	return moment <= later && later - moment <= kinds[s->kind].repeats;
}

static void take_event(struct events_source *s, uint64_t moment)
{
	bool old = s->kind == EVENT_LOGGED && moment < s->part->start_us;

	if (is_near(s, moment, s->skipped))
		return;
	if (!is_near(s, moment, s->last))
		s->last = moment;
	if (old != s->old)
		publish(s);
	s->old = old;
	text_add(&s->ready, text_get(&s->lines.line));
	s->n++;
	keep(s, &s->lines.line, moment);
}

static void take_line(struct events_source *s)
{
	uint64_t moment = moment_of(s, text_get(&s->lines.line));
	CLEANUP_JSON struct json *document = NULL;
	const char *why;

	if (moment) {
		take_event(s, moment);
		return;
	}
	document = json_parse(s->lines.line.at, s->lines.line.len, NULL, 0);
	why = json_get_string(json_get(document, "error"), "text");
	if (why) {
		free(s->why);
		s->why = mem_strdup(why);
	}
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

// Also for listeners: they would take a silence for no events.
static void begin_trouble(struct events_source *s, const char *why)
{
	CLEANUP_FREE char *said = NULL;
	CLEANUP_TEXT struct text line = {0};

	if (!trouble_begin_like(&s->trouble, why))
		return;
	said = mem_printf("%s are not read: %s", kinds[s->kind].name, s->trouble.why);
	log_warning("%s", said);
	api_error_document(said, &line);
	listeners_tell(s->part->listeners, s->kind, false, text_get(&line));
	agent_changed(s->part->agent);
}

static void on_done(void *source, const struct process_result *r)
{
	struct events_source *s = source;
	struct agent *a = s->part->agent;
	CLEANUP_FREE char *why = TAKE_PTR(s->why);
	uint64_t pause_ms;

	s->watch = NULL;
	forget_output(s);
	if (bpffs_exist(a->instance))
		begin_trouble(s, why ? why : "the command was killed, or has crashed");
	pause_ms = trouble_pause_ms(s->trouble.times, AGAIN_FIRST_MS, AGAIN_MOST_MS);
	s->again_ms = agent_now_ms() + pause_ms;
	agent_task_in(&s->part->look, pause_ms);
}

// The changes since the last one, or since the agent's start.
static char *since_last(const struct events_source *s)
{
	uint64_t now_ms = time_ms(CLOCK_REALTIME);
	uint64_t ago_ms = OVERLAP_MS + (now_ms > s->last ? now_ms - s->last : 0);

	if (ago_ms > SINCE_MAX_MS) // the clock was set
		ago_ms = SINCE_MAX_MS;
	return mem_printf("--since=%" PRIu64 "ms", ago_ms);
}

static int start_watch(struct events_source *s, struct err *err)
{
	CLEANUP_FREE char *since = s->kind == EVENT_CHANGE ? since_last(s) : NULL;
	const char *const *words = kinds[s->kind].words;
	const char *const args[] = {words[0], words[1], words[2], since, NULL};
	const struct process_request request = {
		.args = args,
		.modest = true,
		.silent = true, // what fails is in the document
		.plain = true,
		.part = on_part,
		.done = on_done,
		.ctx = s,
	};

	s->skipped = s->last;
	if (s->kind == EVENT_CHANGE && time_ms(CLOCK_REALTIME) < s->last)
		s->skipped = 0; // the clock was set back
	return process_start(s->part->agent, &request, &s->watch, err);
}

static void stop_watch(struct events_source *s)
{
	process_stop(TAKE_PTR(s->watch));
	forget_output(s);
	trouble_end(&s->trouble);
}

// Changes are recorded for an instance that is not attached, too.
static bool has_record(const struct agent *a)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, a->instance);

	return file_exists(folder);
}

static bool is_wanted(const struct events_source *s, bool exists)
{
	const struct events_part *p = s->part;

	switch (s->kind) {
	case EVENT_LOGGED:
		return exists;
	case EVENT_DROP:
		return exists && (p->agent->keeps_drops || listeners_of(p->listeners, EVENT_DROP));
	default:
		return listeners_of(p->listeners, EVENT_CHANGE) && has_record(p->agent);
	}
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
	bool wanted = is_wanted(s, exists);

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
	if (folder != p->instance) {
		stop_watch(&p->sources[EVENT_LOGGED]);
		stop_watch(&p->sources[EVENT_DROP]);
	}
	p->instance = folder;
	for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++)
		if ((code = look_at(&p->sources[kind], folder, err)))
			return code;
	if (p->sources[EVENT_DROP].watch && !p->agent->keeps_drops)
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

// The next one of two kinds; NULL: there are no more. *at: how many of each were taken.
static const struct kept_event *next_kept(const struct events_part *p, size_t at[2])
{
	const struct kept_events *both[] = {&p->logged, &p->drops};
	const struct kept_event *ret = NULL;
	size_t from = 0;

	for (size_t n = 0; n < 2; n++) {
		const struct kept_event *e = NULL;

		while (at[n] < KEPT && !(e = &both[n]->at[(both[n]->next + at[n]) % KEPT])->line)
			at[n]++;
		if (at[n] < KEPT && (!ret || e->us < ret->us)) {
			ret = e;
			from = n;
		}
	}
	at[from]++;
	return ret;
}

// The events of this time that are kept.
static void send_kept(const struct events_part *p, const struct events_query *w)
{
	uint64_t from_us = agent_now_ms() > w->since_ms ? (agent_now_ms() - w->since_ms) * 1000 : 0;
	CLEANUP_TEXT struct text all = {0};
	struct event_lines lines = {.kind = EVENT_LOGGED};
	size_t at[2] = {0, w->logged ? KEPT : 0};

	for (const struct kept_event *e; (e = next_kept(p, at));) {
		if (e->us < from_us)
			continue;
		text_add(&all, e->line);
		lines.n++;
	}
	lines.at = text_get(&all);
	lines.len = all.len;
	if (lines.n)
		listeners_begin(p->listeners, &lines);
}

// Only logged packets, or also drops, which may be unreadable.
static void send_trouble(const struct events_part *p, bool logged)
{
	for (enum event_kind kind = 0; kind <= (logged ? EVENT_LOGGED : EVENT_DROP); kind++) {
		const char *why = p->sources[kind].trouble.why;
		CLEANUP_FREE char *said =
			why ? mem_printf("%s are not read: %s", kinds[kind].name, why) : NULL;
		CLEANUP_TEXT struct text line = {0};

		if (!why)
			continue;
		api_error_document(said, &line);
		listeners_tell(p->listeners, kind, true, text_get(&line));
	}
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
	if (!listeners_add(p->listeners, request,
			   EVENT_BIT(EVENT_LOGGED) | (w.logged ? 0 : EVENT_BIT(EVENT_DROP)),
			   w.count))
		return;
	send_trouble(p, w.logged);
	if (w.since_ms)
		send_kept(p, &w);
	agent_task_in(&p->look, 0);
}

struct listener *events_listen(struct agent *a)
{
	agent_task_in(&a->events->look, 0);
	return listeners_add_process(a->events->listeners,
				     EVENT_BIT(EVENT_LOGGED) | EVENT_BIT(EVENT_CHANGE));
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct events_part *p = mem_new(struct events_part);

	p->agent = a;
	a->events = p;
	p->listeners = listeners_new();
	p->start_us = time_us(CLOCK_MONOTONIC);
	p->sources[EVENT_CHANGE].last = time_ms(CLOCK_REALTIME);
	for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++) {
		p->sources[kind].part = p;
		p->sources[kind].kind = kind;
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
	for (enum event_kind n = 0; n < EVENT_KINDS; n++) {
		stop_watch(&p->sources[n]);
		text_free(&p->sources[n].lines.line);
		text_free(&p->sources[n].ready);
		free(p->sources[n].why);
	}
	agent_task_free(&p->look);
	listeners_free(p->listeners);
	for (size_t n = 0; n < KEPT; n++) {
		free(p->logged.at[n].line);
		free(p->drops.at[n].line);
	}
	free(p);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct events_part *p = a->events;

	for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++) {
		CLEANUP_FREE char *what = mem_printf("%s are not read", kinds[kind].name);

		trouble_report(&p->sources[kind].trouble, what, problems);
	}
	agent_task_report(&p->look, problems);
	json_set(fields, "drops", json_bool(p->sources[EVENT_DROP].watch));
}

const struct agent_part agent_events = {
	.name = "events",
	.start = start,
	.stop = stop,
	.report = report,
};
