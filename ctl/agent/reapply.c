// SPDX-License-Identifier: GPL-2.0-only
// Applies the policy in effect from its record, by `weir apply --again` in a process of its own.
#include "ctl/agent/reapply.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/child.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/in_effect.h"

#define AGAIN_FIRST_MS 10000 // after a failure, doubled up to
#define AGAIN_MOST_MS  600000

struct reapply {
	struct agent *agent;
	char revision[REVISION_ID]; // in effect; "": none
	struct inputs inputs;       // its feeds
	struct child *child;
	bool stale; // a feed has changed since the child began
	struct event *timer;
	unsigned failures; // in a row
	struct err problem;
};

// ---- which policy -----------------------------------------------------------------------------------

// During a trial nothing changes. Without a readable record no feed is followed; then `weir status` has an alarm.
void reapply_look(struct reapply *r)
{
	CLEANUP_IN_EFFECT struct in_effect *e = in_effect_new();
	const char *instance = r->agent->instance;

	if (in_effect_find(instance, e, NULL) || e->trial ||
	    !strcmp(e->about.revision, r->revision))
		return;
	memcpy(r->revision, e->about.revision, sizeof(r->revision));
	inputs_free(&r->inputs);
	if (r->revision[0] && !in_effect_load(instance, e, NULL))
		inputs_read_feeds(e->revision.path, &e->record.reader, &r->inputs);
}

const struct inputs *reapply_inputs(const struct reapply *r)
{
	return &r->inputs;
}

bool reapply_has(const struct reapply *r, const char *url)
{
	vec_each (&r->inputs.feeds, feed)
		if (!strcmp(feed->url.url, url))
			return true;
	return false;
}

// ---- applying it ------------------------------------------------------------------------------------

static void start_in(struct reapply *r, uint64_t ms)
{
	struct timeval in = {.tv_sec = (time_t)(ms / 1000),
			     .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	evtimer_add(r->timer, &in);
}

static void fail(struct reapply *r, const char *said)
{
	const char *last = strrchr(said, '\n');
	unsigned doublings = r->failures < 6 ? r->failures : 6;
	uint64_t ms = (uint64_t)AGAIN_FIRST_MS << doublings;
	struct err why = {0};

	last = last ? last + 1 : said;
	last += strncmp(last, "weir: ", 6) ? 0 : 6;
	err_input(&why, "the feeds of the policy have changed, but %s", last);
	if (!err_is_like(&r->problem, &why))
		log_error("%s; the policy in effect stays", why.text);
	r->problem = why;
	r->failures++;
	start_in(r, ms < AGAIN_MOST_MS ? ms : AGAIN_MOST_MS);
}

static void on_end(void *ctx, int status, const char *said)
{
	struct reapply *r = ctx;

	r->child = NULL;
	if (status) {
		fail(r, said);
	} else {
		child_tell(log_notice, said);
		r->failures = 0;
		err_clear(&r->problem);
		if (r->stale)
			start_in(r, 0);
	}
	agent_changed(r->agent);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	const char *args[3 + CHILD_RESOLVER + 1] = {"apply", "--again", "--offline"};
	struct reapply *r = ctx;
	struct err err = {0};

	(void)fd;
	(void)what;
	if (r->child)
		return;
	child_add_resolver(r->agent, args + 3);
	r->stale = false;
	if (child_start(r->agent, args, on_end, r, &r->child, &err))
		fail(r, err.text);
}

void reapply_soon(struct reapply *r)
{
	r->stale = true;
	start_in(r, 0);
}

const struct err *reapply_problem(const struct reapply *r)
{
	return &r->problem;
}

// ---- start and end ----------------------------------------------------------------------------------

struct reapply *reapply_new(struct agent *a)
{
	struct reapply *r = mem_new(struct reapply);

	r->agent = a;
	r->timer = evtimer_new(a->loop, on_timer, r);
	if (!r->timer)
		mem_exhausted();
	return r;
}

void reapply_free(struct reapply *r)
{
	if (!r)
		return;
	child_stop(r->child);
	event_free(r->timer);
	inputs_free(&r->inputs);
	free(r);
}
