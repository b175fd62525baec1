// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that runs the process of --events and reports its troubles.
#include "ctl/agent/event_log.h"

#include <stdlib.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/events.h"
#include "ctl/agent/history_plan.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define AGAIN_FIRST_MS 1000
#define AGAIN_MOST_MS  60000
#define LINE_MAX_BYTES 4096
#define LOOK_MS        5000
#define SLOW           "lines are not taken as fast as events arrive"

struct event_log {
	struct agent *agent;
	struct listener *listener;
	struct agent_process *writer; // NULL: does not run
	struct history_lines lines;   // its reports
	struct agent_task look;
	uint64_t again_ms; // monotonic; not before
	uint64_t written, lost;
	uint64_t before_written, before_lost; // of writers that have ended
	uint64_t missed;                      // at the last look
	struct trouble failing, slow;
};

// ---- trouble ------------------------------------------------------------------------------------

static void begin(struct event_log *l, struct trouble *t, const char *why)
{
	if (!trouble_begin_like(t, why))
		return;
	log_warning("events are not recorded in '%s': %s", l->agent->events_to, t->why);
	agent_changed(l->agent);
}

static void end(struct event_log *l, struct trouble *t)
{
	if (!trouble_end(t))
		return;
	if (!l->failing.why && !l->slow.why)
		log_notice("events are recorded in '%s' again", l->agent->events_to);
	agent_changed(l->agent);
}

// ---- reports of the process ---------------------------------------------------------------------

static void take_report(struct event_log *l)
{
	CLEANUP_JSON struct json *report = json_parse(l->lines.line.at, l->lines.line.len, NULL, 0);
	const char *why = json_get_string(report, "why");
	uint64_t before = l->written;

	if (!json_get(report, "written"))
		return;
	l->written = l->before_written + json_get_u64(report, "written");
	l->lost = l->before_lost + json_get_u64(report, "lost");
	if (why)
		begin(l, &l->failing, why);
	else if (l->written > before)
		end(l, &l->failing);
	agent_changed(l->agent);
}

static void on_part(void *log, const char *output, size_t len)
{
	struct event_log *l = log;

	while (len)
		if (history_lines_take(&l->lines, LINE_MAX_BYTES, &output, &len) ==
		    HISTORY_LINE_WHOLE)
			take_report(l);
}

// ---- the process --------------------------------------------------------------------------------

static void on_done(void *log, const struct process_result *r)
{
	struct event_log *l = log;
	uint64_t pause_ms;

	listener_end(l->listener, l->written - l->before_written + l->lost - l->before_lost);
	l->writer = NULL;
	l->before_written = l->written;
	l->before_lost = l->lost;
	history_lines_forget(&l->lines);
	begin(l, &l->failing, "the process that writes them has ended");
	pause_ms = trouble_pause_ms(l->failing.times, AGAIN_FIRST_MS, AGAIN_MOST_MS);
	l->again_ms = agent_now_ms() + pause_ms;
	agent_task_in(&l->look, pause_ms);
}

static int start_writer(struct event_log *l, struct err *err)
{
	const char *const args[] = {"-j", EVENT_WRITER, l->agent->events_to, NULL};
	const struct process_request request = {
		.args = args,
		.reads = true,
		.modest = true,
		.plain = true,
		.part = on_part,
		.done = on_done,
		.ctx = l,
	};
	int code = process_start(l->agent, &request, &l->writer, err);

	if (code)
		return code;
	listener_use(l->listener, l->writer);
	return 0;
}

// A process that hangs reports nothing.
static void look_at_queue(struct event_log *l)
{
	uint64_t missed = listener_missed(l->listener);

	if (missed == l->missed)
		end(l, &l->slow);
	else if (l->writer)
		begin(l, &l->slow, SLOW);
	l->missed = missed;
	agent_task_in(&l->look, LOOK_MS);
}

static int look(void *log, struct err *err)
{
	struct event_log *l = log;
	uint64_t now_ms = agent_now_ms();

	look_at_queue(l);
	if (l->writer)
		return 0;
	if (now_ms >= l->again_ms)
		return start_writer(l, err);
	agent_task_in(&l->look, l->again_ms - now_ms);
	return 0;
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct event_log *l;

	if (!a->events_to)
		return 0;
	l = mem_new(struct event_log);
	l->agent = a;
	a->event_log = l;
	l->listener = events_listen(a);
	agent_task_init(&l->look, a, "record of events", look, l);
	agent_task_in(&l->look, 0);
	return 0;
}

// Its pipe has the last events; how many it has no room for is logged.
static void leave_writer(struct event_log *l)
{
	size_t left;

	if (l->writer)
		process_flush(l->writer);
	if ((left = listener_waiting(l->listener)))
		log_warning("%zu %s not recorded in '%s'", left,
			    num_plural(left, "event was", "events were"), l->agent->events_to);
	listener_use(l->listener, NULL);
	process_leave(l->writer);
}

static void stop(struct agent *a)
{
	struct event_log *l = TAKE_PTR(a->event_log);

	if (!l)
		return;
	leave_writer(l);
	agent_task_free(&l->look);
	text_free(&l->lines.line);
	trouble_end(&l->failing);
	trouble_end(&l->slow);
	free(l);
}

// The lines so far belong into the old file.
static int reload(struct agent *a, struct err *err)
{
	if (a->event_log)
		listener_tell(a->event_log->listener, EVENT_REOPEN);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct event_log *l = a->event_log;

	json_set(fields, "to", json_string(l ? a->events_to : EVENTS_NONE));
	if (!l)
		return;
	json_set(fields, "written", json_u64(l->written));
	json_set(fields, "lost", json_u64(l->lost + listener_missed(l->listener)));
	trouble_report(&l->failing, "events are not recorded", problems);
	trouble_report(&l->slow, "events are not recorded", problems);
	agent_task_report(&l->look, problems);
}

const struct agent_part agent_event_log = {
	.name = "event log",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
