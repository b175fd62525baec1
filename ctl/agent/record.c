// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that records what the agent itself changes.
#include "ctl/agent/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/base/vec.h"
#include "ctl/control/changelog.h"

#define WAITING_MAX 1000

struct record_part {
	struct agent *agent;
	VEC(struct changelog_change) waiting; // the oldest first
	struct agent_task task;
};

// ---- one change ---------------------------------------------------------------------------------

// The strings of *by and of c must live as long as the result.
static struct changelog_change make(const struct record_change *c, char by[CHANGELOG_WORD])
{
	snprintf(by, CHANGELOG_WORD, "agent (%s)", c->part);
	return (struct changelog_change){
		.at_ms = time_ms(CLOCK_REALTIME),
		.uid = getuid(),
		.entries = c->entries,
		.verb = (char *)c->verb,
		.command = (char *)c->what,
		.by = by,
		.result = (char *)(c->failed ? "failed" : CHANGELOG_DONE),
		.text = (char *)c->why,
		.added = c->added,
		.removed = c->removed,
	};
}

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static struct changelog_change copy_of(const struct changelog_change *c)
{
	struct changelog_change all = *c;

	all.verb = copy(c->verb);
	all.command = copy(c->command);
	all.by = copy(c->by);
	all.result = copy(c->result);
	all.text = copy(c->text);
	return all;
}

void record_change_here(const struct agent *a, const struct record_change *c)
{
	char by[CHANGELOG_WORD];
	struct changelog_change change = make(c, by);

	changelog_add(a->instance, &change);
}

void record_change(struct agent *a, const struct record_change *c)
{
	struct record_part *p = a->record;
	char by[CHANGELOG_WORD];
	struct changelog_change change = make(c, by);

	if (!p || p->waiting.n >= WAITING_MAX) {
		changelog_add_lost(a->instance);
		return;
	}
	// An earlier one that waits is recorded first.
	if (!p->waiting.n && !changelog_try(a->instance, &change))
		return;
	vec_push(&p->waiting, copy_of(&change));
	agent_task_in(&p->task, 0);
}

// ---- those that wait ----------------------------------------------------------------------------

static void forget_first(struct record_part *p, size_t n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		changelog_free_change(&p->waiting.at[i]);
	p->waiting.n -= n;
	memmove(p->waiting.at, p->waiting.at + n, p->waiting.n * sizeof(*p->waiting.at));
}

static int write_waiting(void *part, struct err *err)
{
	struct record_part *p = part;
	size_t n = 0;
	int code = 0;

	while (n < p->waiting.n && !(code = changelog_try(p->agent->instance, &p->waiting.at[n])))
		n++;
	forget_first(p, n);
	if (code)
		err_refused(err, "another process has locked the record of changes");
	return code;
}

static int start(struct agent *a, struct err *err)
{
	struct record_part *p = mem_new(struct record_part);

	p->agent = a;
	a->record = p;
	agent_task_init(&p->task, a, "record of changes", write_waiting, p);
	return 0;
}

static void stop(struct agent *a)
{
	struct record_part *p = TAKE_PTR(a->record);

	if (!p)
		return;
	// Only the first waits for the file.
	vec_each (&p->waiting, c)
		if (c == p->waiting.at)
			changelog_add(a->instance, c);
		else if (changelog_try(a->instance, c))
			changelog_add_lost(a->instance);
	forget_first(p, p->waiting.n);
	vec_free(&p->waiting);
	agent_task_free(&p->task);
	free(p);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	agent_task_report(&a->record->task, problems);
}

const struct agent_part agent_record = {
	.name = "record",
	.start = start,
	.stop = stop,
	.report = report,
};
