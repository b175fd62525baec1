// SPDX-License-Identifier: GPL-2.0-only
// A timer for each task, and when a task that failed is tried again.
#include "ctl/agent/task.h"

#include <errno.h>
#include <event2/event.h>
#include <time.h>

#include "ctl/agent/agent.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/net/loop.h"

#define REPORT_MS          20 // changes of a report within this time are one
#define LOCKED_FIRST_MS    20
#define LOCKED_MOST_MS     1000
#define LOCKED_PATIENCE_MS 30000 // a lock that others hold for this long is a problem
#define FAILED_FIRST_MS    1000
#define FAILED_MOST_MS     60000

uint64_t agent_now_ms(void)
{
	return time_ms(CLOCK_MONOTONIC);
}

void agent_changed(struct agent *a)
{
	if (a->report)
		agent_task_in(a->report, REPORT_MS);
}

static void keep_problem(struct agent_task *t, const struct err *err)
{
	err_full_text full;

	if (!trouble_begin(&t->trouble, err->text))
		return;
	log_warning("%s: %s", t->what, err_full(err, full));
	agent_changed(t->agent);
}

static void wait_for_lock(struct agent_task *t, const struct err *err)
{
	uint64_t now = agent_now_ms();

	if (!t->trouble.times)
		t->since_ms = now;
	if (now - t->since_ms >= LOCKED_PATIENCE_MS)
		keep_problem(t, err);
	else
		t->trouble.times++;
	agent_task_in(t, trouble_pause_ms(t->trouble.times, LOCKED_FIRST_MS, LOCKED_MOST_MS));
}

static void fail(struct agent_task *t, const struct err *err)
{
	if (!t->trouble.times)
		t->since_ms = agent_now_ms();
	keep_problem(t, err);
	agent_task_in(t, trouble_pause_ms(t->trouble.times, FAILED_FIRST_MS, FAILED_MOST_MS));
}

static void tell_end(struct agent_task *t)
{
	log_notice("%s: works again", t->what);
	agent_changed(t->agent);
}

void agent_task_end(struct agent_task *t, int code, const struct err *err)
{
	if (code == -EINPROGRESS)
		return;
	if (code == -EAGAIN)
		wait_for_lock(t, err);
	else if (code)
		fail(t, err);
	else if (trouble_end(&t->trouble))
		tell_end(t);
}

static void on_time(evutil_socket_t fd, short what, void *task)
{
	struct agent_task *t = task;
	struct err err = {0};
	int code;

	loop_span_name(t->what);
	t->due_ms = 0;
	code = t->run(t->ctx, &err);
	agent_task_end(t, code, &err);
}

void agent_task_init(struct agent_task *t, struct agent *a, const char *what,
		     int (*run)(void *ctx, struct err *err), void *ctx)
{
	*t = (struct agent_task){.agent = a, .what = what, .run = run, .ctx = ctx};
	t->timer = loop_timer(a->loop, on_time, t);
	if (!t->timer)
		mem_exhausted();
}

void agent_task_free(struct agent_task *t)
{
	loop_event_free(t->timer);
	trouble_end(&t->trouble);
	*t = (struct agent_task){0};
}

void agent_task_move(struct agent_task *t, uint64_t ms)
{
	struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
			       .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	t->due_ms = agent_now_ms() + ms;
	evtimer_add(t->timer, &wait);
}

void agent_task_in(struct agent_task *t, uint64_t ms)
{
	if (!t->due_ms || t->due_ms > agent_now_ms() + ms)
		agent_task_move(t, ms);
}

void agent_task_cancel(struct agent_task *t)
{
	t->due_ms = 0;
	evtimer_del(t->timer);
}

void agent_task_report(const struct agent_task *t, struct json *problems)
{
	trouble_report(&t->trouble, t->what, problems);
}
