// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the countries and autonomous systems of entries: they follow their
// databases.
//
// The work is that of `weir refresh --places`, in a process of its own: once when there are such
// entries, when a database changes, and later and later while one of them keeps its prefixes of
// before.
#include "ctl/agent/places.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/exchange.h"
#include "ctl/agent/task.h"
#include "ctl/agent/watches.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_db.h"
#include "ctl/net/loop.h"

#define AGAIN_FIRST_S  10
#define AGAIN_MOST_S   600
#define OUTPUT_MAX     (64u << 20)
#define TIMEOUT_S      300
#define PROBLEMS_SHOWN 5

struct problem {
	char *name, *why;
};

struct problems {
	struct problem *at;
	size_t n, cap;
};

struct places_part {
	struct agent *agent;
	struct watches *watches;
	struct exchange *asking;
	struct event *again; // a timer
	bool wanted;         // after the command that runs
	uint64_t asked_ms;
	unsigned failures; // in a row
	size_t n;          // such entries have so many names
	struct problems problems;
};

static void problems_free(struct problems *problems)
{
	vec_each (problems, one) {
		free(one->name);
		free(one->why);
	}
	vec_free(problems);
}

static const struct problem *find(const struct problems *problems, const char *name)
{
	vec_each (problems, one)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

// ---- results ------------------------------------------------------------------------------------

static void take_problem(struct places_part *p, struct problems *to, const char *name,
			 const char *why)
{
	const struct problem *before = find(&p->problems, name);

	if (!before || strcmp(before->why, why) != 0)
		log_warning("%s; the previous prefixes stay in effect", why);
	vec_push(to, ((struct problem){mem_strdup(name), mem_strdup(why)}));
}

static void tell_change(const struct places_part *p, const char *name, const struct json *row)
{
	uint64_t added = json_get_u64(row, "added"), removed = json_get_u64(row, "released");

	if (added || removed)
		log_notice("%s: %llu %s added, %llu removed", name, (unsigned long long)added,
			   num_plural(added, "prefix", "prefixes"), (unsigned long long)removed);
	else if (find(&p->problems, name))
		log_notice("%s follows its database again", name);
}

static void take_row(struct places_part *p, const struct json *row, struct problems *to)
{
	const char *name = json_get_string(row, "name"), *why = json_get_string(row, "error");

	if (!name)
		return;
	if (why && why[0])
		take_problem(p, to, name, why);
	else
		tell_change(p, name, row);
}

static void ask(struct places_part *p);

static void wait_and_ask(struct places_part *p)
{
	unsigned doublings = p->failures < 8 ? p->failures : 7;
	unsigned s = AGAIN_FIRST_S << doublings;
	struct timeval in = {.tv_sec = s < AGAIN_MOST_S ? s : AGAIN_MOST_S};

	p->failures++;
	evtimer_add(p->again, &in);
}

static void on_answer(void *part, const struct exchange_result *r)
{
	struct places_part *p = part;
	const struct json *rows = json_get(r->document, "names");
	struct problems problems = {0};

	p->asking = NULL;
	for (size_t n = 0; n < json_length(rows); n++)
		take_row(p, json_at(rows, n), &problems);
	if (r->status && !problems.n)
		take_problem(p, &problems, "",
			     "countries and autonomous systems of entries cannot be looked for");
	problems_free(&p->problems);
	p->problems = problems;
	if (p->wanted)
		ask(p);
	else if (problems.n)
		wait_and_ask(p);
	else
		p->failures = 0;
	agent_changed(p->agent);
}

static void ask(struct places_part *p)
{
	static const char *const args[] = {"-j", "refresh", "--places", NULL};
	struct exchange_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.timeout_s = TIMEOUT_S,
		.silent = true, // what fails is in the document
		.done = on_answer,
		.ctx = p,
	};
	struct err err = {0};

	p->wanted = p->asking;
	if (p->asking)
		return;
	evtimer_del(p->again);
	p->asked_ms = agent_now_ms();
	if (!exchange_start(p->agent, &request, &p->asking, &err))
		return;
	log_error("%s", err.text);
	wait_and_ask(p);
}

// ---- when ---------------------------------------------------------------------------------------

static void on_change(void *part)
{
	ask(part);
}

static void on_again(evutil_socket_t fd, short what, void *part)
{
	ask(part);
}

static void watch(struct places_part *p)
{
	CLEANUP(watches_paths_free) struct watches_paths paths = {0};
	CLEANUP(geo_paths_free) struct geo_paths databases = {0};

	if (p->n)
		geo_db_patterns(&databases);
	vec_each (&databases.paths, path)
		vec_push(&paths.all, TAKE_PTR(*path));
	databases.paths.n = 0;
	watches_set(p->watches, &paths);
}

// A command may have repeated what was refused, so a problem is looked at again.
void places_listed(struct agent *a, size_t n)
{
	struct places_part *p = a->places;
	bool first = p && !p->n && n, last = p && p->n && !n;

	if (!p)
		return;
	p->n = n;
	if (first || last)
		watch(p);
	if (first ||
	    (p->problems.n && agent_now_ms() - p->asked_ms > AGAIN_FIRST_S * UINT64_C(1000)))
		ask(p);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct places_part *p = mem_new(struct places_part);

	p->agent = a;
	a->places = p;
	if (!(p->again = loop_timer(a->loop, on_again, p)))
		return err_system(err, ENOMEM, "cannot make a timer");
	return watches_new(a->loop, on_change, p, &p->watches, err);
}

static void stop(struct agent *a)
{
	struct places_part *p = TAKE_PTR(a->places);

	if (!p)
		return;
	exchange_stop(p->asking);
	watches_free(p->watches);
	loop_event_free(p->again);
	problems_free(&p->problems);
	free(p);
}

static int reload(struct agent *a, struct err *err)
{
	if (a->places->n)
		ask(a->places);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct problems *own = &a->places->problems;

	for (size_t n = 0; n < own->n && n < PROBLEMS_SHOWN; n++)
		json_append(problems, json_string(own->at[n].why));
	json_set(fields, "places", json_u64(a->places->n));
	json_set(fields, "failing", json_u64(own->n));
}

const struct agent_part agent_places = {
	.name = "places",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
