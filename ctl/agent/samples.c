// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that reads samples of packets: one `weir top --by all` while clients of
// /v1/samples want them, since the datapath has one ring for them.
#include "ctl/agent/samples.h"

#include <event2/http.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/history_plan.h"
#include "ctl/agent/live.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

#define LOOK_MS        1000 // while clients read
#define AGAIN_SOON_MS  200
#define AGAIN_FIRST_MS 1000
#define AGAIN_MOST_MS  60000
#define LINE_MAX_BYTES (1u << 20) // a longer document is skipped
#define ROWS           "200"      // of each key

struct samples_part {
	struct agent *agent;
	struct live_stream *live;
	struct agent_process *top; // NULL: does not run
	struct history_lines lines;
	struct agent_task look;
	struct trouble trouble;
	uint64_t again_ms; // monotonic; not before
	bool failed;       // the last document is an error
	unsigned failures; // in a row
	ino_t instance;    // inode of its folder: another one is another instance
};

// ---- documents ----------------------------------------------------------------------------------

static void begin_trouble(struct samples_part *p, const char *why)
{
	if (!trouble_begin_like(&p->trouble, why))
		return;
	log_warning("samples are not read: %s", p->trouble.why);
	agent_changed(p->agent);
}

// Clients also get an error: they wait for it. The first one may be due to a `weir top` that was
// killed and has not ended yet.
static void take_line(struct samples_part *p)
{
	const struct text *line = &p->lines.line;
	CLEANUP_JSON struct json *document = json_parse(line->at, line->len, NULL, 0);
	const char *why = json_get_string(json_get(document, "error"), "text");

	if (!why && !json_get(document, "sampled_percent"))
		return;
	p->failed = why;
	p->failures = why ? p->failures + 1 : 0;
	if (p->failures == 1)
		return;
	live_publish(p->live, LIVE_RATES, line->at, line->len);
	if (why) {
		begin_trouble(p, why);
	} else if (trouble_end(&p->trouble)) {
		log_notice("samples are read again");
		agent_changed(p->agent);
	}
}

static void on_part(void *part, const char *output, size_t len)
{
	struct samples_part *p = part;

	while (len)
		if (history_lines_take(&p->lines, LINE_MAX_BYTES, &output, &len) ==
		    HISTORY_LINE_WHOLE)
			take_line(p);
}

// ---- weir top -----------------------------------------------------------------------------------

static void on_done(void *part, const struct process_result *r)
{
	struct samples_part *p = part;
	uint64_t pause_ms;

	p->top = NULL;
	history_lines_forget(&p->lines);
	if (!p->failed) {
		live_forget(p->live, LIVE_RATES);
		begin_trouble(p, "weir top was killed, or has crashed");
	}
	pause_ms = p->failures == 1
			   ? AGAIN_SOON_MS
			   : trouble_pause_ms(p->trouble.times, AGAIN_FIRST_MS, AGAIN_MOST_MS);
	p->again_ms = agent_now_ms() + pause_ms;
	agent_task_in(&p->look, pause_ms);
}

static int start_top(struct samples_part *p, struct err *err)
{
	static const char *const args[] = {"-j", "top", "--by", "all", "--top", ROWS, NULL};
	const struct process_request request = {
		.args = args,
		.modest = true,
		.silent = true, // what fails is in the document
		.plain = true,
		.part = on_part,
		.done = on_done,
		.ctx = p,
	};

	p->failed = false;
	return process_start(p->agent, &request, &p->top, err);
}

static void stop_top(struct samples_part *p)
{
	process_stop(TAKE_PTR(p->top));
	history_lines_forget(&p->lines);
	live_forget(p->live, LIVE_RATES);
	p->again_ms = 0;
}

// 0: it does not exist.
static ino_t find_instance(const struct samples_part *p)
{
	CLEANUP_FREE char *path = mem_printf(BPFFS_ROOT "/%s", p->agent->instance);
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

// Begins `weir top` when a client reads, and ends it after the last one has left.
static int look(void *part, struct err *err)
{
	struct samples_part *p = part;
	uint64_t now_ms = agent_now_ms();
	ino_t instance = find_instance(p);

	if (!live_readers(p->live, LIVE_RATES)) {
		stop_top(p);
		trouble_end(&p->trouble);
		return 0;
	}
	agent_task_in(&p->look, LOOK_MS);
	if (instance != p->instance)
		stop_top(p);
	p->instance = instance;
	if (p->top)
		return 0;
	if (now_ms >= p->again_ms)
		return start_top(p, err);
	agent_task_in(&p->look, p->again_ms - now_ms);
	return 0;
}

void samples_answer(struct agent *a, struct evhttp_request *request)
{
	struct samples_part *p = a->samples;

	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
		api_refuse_method(request, "GET");
		return;
	}
	if (!p) {
		api_refuse(request, HTTP_NOTFOUND, "only an agent has " API_SAMPLES);
		return;
	}
	if (!p->top) { // the error of an earlier attempt says nothing about now
		live_forget(p->live, LIVE_RATES);
		p->again_ms = 0;
	}
	live_answer(p->live, request, LIVE_FROM_API, false);
	agent_task_in(&p->look, 0);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct samples_part *p = mem_new(struct samples_part);

	p->agent = a;
	a->samples = p;
	p->live = live_new(API_SAMPLES);
	agent_task_init(&p->look, a, "samples", look, p);
	return 0;
}

static void stop(struct agent *a)
{
	struct samples_part *p = TAKE_PTR(a->samples);

	if (!p)
		return;
	process_stop(p->top);
	agent_task_free(&p->look);
	live_free(p->live);
	trouble_end(&p->trouble);
	text_free(&p->lines.line);
	free(p);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct samples_part *p = a->samples;

	trouble_report(&p->trouble, "samples are not read", problems);
	agent_task_report(&p->look, problems);
	json_set(fields, "read", json_bool(p->top));
}

const struct agent_part agent_samples = {
	.name = "samples",
	.start = start,
	.stop = stop,
	.report = report,
};
