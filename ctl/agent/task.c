// SPDX-License-Identifier: GPL-2.0-only
// A timer for each task, and when a task that failed is tried again.
#include "ctl/agent/task.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <time.h>

#include "ctl/agent/agent.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/net/loop.h"

#define LOCKED_FIRST_MS    20
#define LOCKED_MOST_MS     1000
#define LOCKED_PATIENCE_MS 30000 // a lock that others have for so long is a problem
#define FAILED_FIRST_MS    1000
#define FAILED_MOST_MS     60000

uint64_t agent_now_ms(void)
{
	return time_ms(CLOCK_MONOTONIC);
}

static uint64_t pause_ms(unsigned failures, uint64_t first, uint64_t most)
{
	unsigned doublings = failures < 16 ? failures - 1 : 15;

	return first << doublings < most ? first << doublings : most;
}

static void succeed(struct agent_task *t)
{
	if (t->problem.text[0])
		log_notice("%s: works again", t->what);
	if (t->problem.text[0])
		agent_changed(t->agent);
	t->failures = 0;
	err_clear(&t->problem);
}

static void keep_problem(struct agent_task *t, const struct err *err)
{
	err_full_text full;

	if (!strcmp(t->problem.text, err->text))
		return;
	t->problem = *err;
	log_warning("%s: %s", t->what, err_full(err, full));
	agent_changed(t->agent);
}

static void fail(struct agent_task *t, int code, const struct err *err)
{
	uint64_t now = agent_now_ms();

	if (!t->failures++)
		t->since_ms = now;
	if (code == -EAGAIN) {
		agent_task_in(t, pause_ms(t->failures, LOCKED_FIRST_MS, LOCKED_MOST_MS));
		if (now - t->since_ms >= LOCKED_PATIENCE_MS)
			keep_problem(t, err);
		return;
	}
	keep_problem(t, err);
	agent_task_in(t, pause_ms(t->failures, FAILED_FIRST_MS, FAILED_MOST_MS));
}

static void on_time(evutil_socket_t fd, short what, void *task)
{
	struct agent_task *t = task;
	struct err err = {0};
	int code;

	loop_span_name(t->what);
	t->due_ms = 0;
	code = t->run(t->ctx, &err);
	if (code)
		fail(t, code, &err);
	else
		succeed(t);
}

int agent_task_init(struct agent_task *t, struct agent *a, const char *what,
		    int (*run)(void *ctx, struct err *err), void *ctx, struct err *err)
{
	*t = (struct agent_task){.agent = a, .what = what, .run = run, .ctx = ctx};
	t->timer = loop_timer(a->loop, on_time, t);
	return t->timer ? 0 : err_system(err, ENOMEM, "cannot set a timer");
}

void agent_task_free(struct agent_task *t)
{
	loop_event_free(t->timer);
	*t = (struct agent_task){0};
}

void agent_task_in(struct agent_task *t, uint64_t ms)
{
	uint64_t due = agent_now_ms() + ms;
	struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
			       .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	if (t->due_ms && t->due_ms <= due)
		return;
	t->due_ms = due;
	evtimer_add(t->timer, &wait);
}

void agent_task_report(const struct agent_task *t, struct json *problems)
{
	if (t->problem.text[0]) {
		CLEANUP_FREE char *text = mem_printf("%s: %s", t->what, t->problem.text);

		json_append(problems, json_string(text));
	}
}
