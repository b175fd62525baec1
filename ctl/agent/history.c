// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that measures rates: one `weir top` for all clients, whose documents
// go to the clients of /v1/live and into the history.
#include "ctl/agent/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/live.h"
#include "ctl/agent/overview.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define AFTER_COMMAND_MS 200 // an attach may have made the instance
#define AGAIN_FIRST_MS   1000
#define AGAIN_MOST_MS    60000
#define LINE_MAX_BYTES   (1u << 20) // a longer document is skipped
#define QUERY_SERIES     50
#define ROWS             "200" // in each part of a document: the loop reads it

struct history_part {
	struct agent *agent;
	struct history *history; // NULL: --no-history
	struct live_stream *live;
	struct overview *overview;
	struct agent_process *top; // NULL: does not run
	struct history_lines lines;
	char *why; // the error that `weir top` has ended with
	struct agent_task look;
	struct trouble trouble;
	uint64_t again_ms; // monotonic; not before
};

// ---- documents ----------------------------------------------------------------------------------

// The document has the time of the reading; it may have been received much later. The time of the
// wall clock is that which it now has for the same moment.
static void keep_document(struct history_part *p, const struct json *document)
{
	uint64_t now_ms = agent_now_ms(), read_ms = json_get_u64(document, "monotonic_us") / 1000;

	if (read_ms > now_ms)
		read_ms = now_ms;
	history_take(p->history, document, read_ms, time_ms(CLOCK_REALTIME) - (now_ms - read_ms));
}

static void take_document(struct history_part *p, const struct json *document)
{
	if (trouble_end(&p->trouble)) {
		log_notice("rates are measured again");
		agent_changed(p->agent);
	}
	if (p->history)
		keep_document(p, document);
	live_publish(p->live, LIVE_RATES, p->lines.line.at, p->lines.line.len);
}

static void take_line(struct history_part *p)
{
	CLEANUP_JSON struct json *document =
		json_parse(p->lines.line.at, p->lines.line.len, NULL, 0);
	const char *why = json_get_string(json_get(document, "error"), "text");

	if (why) {
		free(p->why);
		p->why = mem_strdup(why);
	} else if (json_get_u64(document, "span_us")) {
		take_document(p, document);
	}
}

static void begin_trouble(struct history_part *p, const char *why)
{
	if (!trouble_begin_like(&p->trouble, why))
		return;
	log_warning("rates are not measured: %s", p->trouble.why);
	agent_changed(p->agent);
}

// A document is a line.
static void on_part(void *part, const char *output, size_t len)
{
	struct history_part *p = part;

	while (len)
		switch (history_lines_take(&p->lines, LINE_MAX_BYTES, &output, &len)) {
		case HISTORY_LINE_WHOLE:
			take_line(p);
			break;
		case HISTORY_LINE_LONG:
			begin_trouble(p, "a document of weir top is longer than 1 MiB");
			break;
		case HISTORY_LINE_OPEN:
			break;
		}
}

// ---- weir top -----------------------------------------------------------------------------------

static bool is_wanted(const struct history_part *p)
{
	return p->history || live_readers(p->live, LIVE_RATES);
}

// A command that holds the lock may be making the instance: -EAGAIN, and the task runs again.
static int find_instance(const struct history_part *p, bool *ret_exists, struct err *err)
{
	CLEANUP_FD int lock = -1;
	int code = lock_share(p->agent->instance, &lock, err);

	if (code)
		return code;
	*ret_exists = bpffs_exist(p->agent->instance);
	return 0;
}

static void on_done(void *part, const struct process_result *r)
{
	struct history_part *p = part;
	CLEANUP_FREE char *why = TAKE_PTR(p->why);
	uint64_t pause_ms;

	p->top = NULL;
	history_lines_forget(&p->lines);
	live_forget(p->live, LIVE_RATES);
	if (bpffs_exist(p->agent->instance))
		begin_trouble(p, why ? why : "weir top was killed, or has crashed");
	pause_ms = trouble_pause_ms(p->trouble.times, AGAIN_FIRST_MS, AGAIN_MOST_MS);
	p->again_ms = agent_now_ms() + pause_ms;
	agent_task_in(&p->look, pause_ms);
}

static int start_top(struct history_part *p, struct err *err)
{
	static const char *const args[] = {"-j", "top", "--top", ROWS, NULL};
	const struct process_request request = {
		.args = args,
		.modest = true,
		.silent = true, // what fails is in the document
		.plain = true,
		.part = on_part,
		.done = on_done,
		.ctx = p,
	};

	return process_start(p->agent, &request, &p->top, err);
}

// Begins `weir top` if it is wanted, and ends it if it is not.
static int look(void *part, struct err *err)
{
	struct history_part *p = part;
	uint64_t now_ms = agent_now_ms();
	bool exists = false;
	int code;

	if (p->top && !p->history && !live_readers(p->live, LIVE_RATES)) {
		process_stop(TAKE_PTR(p->top));
		history_lines_forget(&p->lines);
		live_forget(p->live, LIVE_RATES);
	}
	if (p->top && !p->history)
		agent_task_in(&p->look, AGAIN_FIRST_MS); // until its last client has left
	if (p->top || !is_wanted(p))
		return 0;
	if (now_ms < p->again_ms) {
		agent_task_in(&p->look, p->again_ms - now_ms);
		return 0;
	}
	if ((code = find_instance(p, &exists, err)) || !exists)
		return code;
	if (!p->history)
		agent_task_in(&p->look, AGAIN_FIRST_MS);
	return start_top(p, err);
}

// ---- requests -----------------------------------------------------------------------------------

void history_live(struct agent *a, struct evhttp_request *request, enum live_from from,
		  bool reads_state)
{
	struct history_part *p = a->history;

	live_answer(p->live, request, from, reads_state);
	agent_task_in(&p->look, 0);
	if (reads_state)
		overview_want(p->overview);
}

bool history_is_kept(const struct agent *a)
{
	return a->history->history;
}

void history_query_free(struct history_query *q)
{
	if (!q)
		return;
	vec_each (&q->series, name)
		free(*name);
	vec_free(&q->series);
	free(q);
}

static int read_span(const struct json *query, struct history_query *ret, struct err *err)
{
	const char *span = json_get_string(query, "span");

	if (!json_get(query, "span") || text_same(span, "5m"))
		ret->span = HISTORY_5M;
	else if (text_same(span, "24h"))
		ret->span = HISTORY_24H;
	else
		return err_input(err, "'span' of /v1/history must be 5m or 24h");
	return 0;
}

static int read_series(const struct history *h, const struct json *query, struct history_query *ret,
		       struct err *err)
{
	CLEANUP_FREE char *names = json_get_copy(query, "series");
	char *rest = NULL;

	if (json_get(query, "series") && !names[0])
		return err_input(err, "'series' of /v1/history must be names of series");
	for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
		if (ret->series.n == QUERY_SERIES)
			return err_input(err, "'series' of /v1/history has more than %d names",
					 QUERY_SERIES);
		if (!history_has(h, name)) {
			err_input(err, "there is no series '%s'", name);
			return -ENOENT;
		}
		vec_push(&ret->series, mem_strdup(name));
	}
	return 0;
}

struct keys {
	struct err *err;
	int code;
};

static void check_key(void *keys, const char *key, const struct json *value)
{
	struct keys *k = keys;

	if (!k->code && strcmp(key, "span") != 0 && strcmp(key, "series") != 0)
		k->code = err_input(k->err, "/v1/history has no '%s'", key);
}

int history_query_make(const struct agent *a, const struct json *query, struct history_query *ret,
		       struct err *err)
{
	struct keys keys = {.err = err};
	int code;

	if (!a->history->history) {
		err_input(err, "the agent keeps no history (weir run --no-history)");
		return -ENOENT;
	}
	json_each(query, check_key, &keys);
	if (keys.code)
		return keys.code;
	if ((code = read_span(query, ret, err)))
		return code;
	return read_series(a->history->history, query, ret, err);
}

void history_query_write(const struct agent *a, const struct history_query *q, struct text *to)
{
	CLEANUP(json_writer_free) struct json_writer w = {0};
	num_time_text now;

	json_write_object(&w, NULL);
	json_write_u64(&w, "schema", 1);
	if (num_format_time_ms(time_ms(CLOCK_REALTIME), now))
		json_write_string(&w, "time", now);
	history_write(a->history->history, q->span, (const char *const *)q->series.at, q->series.n,
		      &w);
	json_write_end(&w);
	text_addn(to, w.text.at, w.text.len);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct history_part *p = mem_new(struct history_part);

	p->agent = a;
	a->history = p;
	p->live = live_new("/v1/live");
	p->overview = overview_new(a, p->live);
	p->history = a->keeps_history ? history_new() : NULL;
	agent_task_init(&p->look, a, "rates", look, p);
	agent_after_command(a, &p->look, AFTER_COMMAND_MS);
	agent_task_in(&p->look, 0);
	return 0;
}

static void stop(struct agent *a)
{
	struct history_part *p = TAKE_PTR(a->history);

	if (!p)
		return;
	process_stop(p->top);
	agent_task_free(&p->look);
	overview_free(p->overview);
	live_free(p->live);
	history_free(p->history);
	trouble_end(&p->trouble);
	text_free(&p->lines.line);
	free(p->why);
	free(p);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct history_part *p = a->history;

	trouble_report(&p->trouble, "rates are not measured", problems);
	agent_task_report(&p->look, problems);
	json_set(fields, "kept", json_bool(p->history));
	if (p->history)
		json_set(fields, "series", json_u64(history_count(p->history)));
}

const struct agent_part agent_history = {
	.name = "history",
	.start = start,
	.stop = stop,
	.report = report,
};
