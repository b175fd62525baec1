// SPDX-License-Identifier: GPL-2.0-only
// Finds agents that hang or are missed, and names and lists that are overdue.
#include "ctl/cmd/agent_problems.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/agent/inputs.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/control/active.h"
#include "ctl/control/feed_lists.h"

void agent_problems_free(struct agent_problems *p)
{
	vec_each (p, one) {
		free(one->text);
		free(one->mend);
		free(one->list);
		free(one->same);
	}
	vec_free(p);
}

// Takes over `mend`. Problems with one format are the same one, whatever changes in the text.
__attribute__((format(printf, 3, 4))) static struct agent_problem *add(struct agent_problems *to,
								       char *mend, const char *fmt,
								       ...)
{
	struct text t = {0};
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(&t, fmt, ap);
	va_end(ap);
	vec_push(to, ((struct agent_problem){
			     .text = text_take(&t), .mend = mend, .same = mem_strdup(fmt)}));
	return vec_last(to);
}

// ---- the agent ----------------------------------------------------------------------------------

// The unit that the agent has reported; NULL: none, or no argument of a command. A backslash, as
// systemd-escape writes it, is for people to quote: then the alarm has no command.
static const char *unit_of(const struct presence *p)
{
	const char *unit = json_get_string(p->report, "unit");

	return unit && unit[0] != '-' && !strchr(unit, ' ') ? unit : NULL;
}

static char *start_again(const char *instance, const struct presence *p)
{
	const char *unit = unit_of(p);

	return unit ? mem_printf("systemctl start %s", unit)
		    : mem_printf("weir -n %s run", instance);
}

static char *restart(const char *instance, const struct presence *p)
{
	const char *unit = unit_of(p);

	return unit ? mem_printf("systemctl restart %s", unit)
		    : mem_printf("kill -KILL %llu, weir -n %s run", (unsigned long long)p->pid,
				 instance);
}

// A part has several problems, of which the agent reports only the texts.
static void add_sentence(const char *part, const char *text, struct agent_problems *to)
{
	struct agent_problem *p = add(to, mem_strdup(""), "agent, %s: %s", part, text);

	free(TAKE_PTR(p->same));
}

static void add_part(const struct json *part, struct agent_problems *to)
{
	const struct json *problems = json_get(part, "problems");
	const char *name = json_get_string(part, "name");

	for (size_t n = 0; n < json_length(problems); n++) {
		const char *text = json_text(json_at(problems, n));

		if (name && text)
			add_sentence(name, text, to);
	}
}

static void add_running(const char *instance, const struct presence *p, struct agent_problems *to)
{
	const struct json *parts = json_get(p->report, "parts");
	num_text time;

	if (p->late_ms)
		add(to, restart(instance, p), "the agent hangs: it has done nothing for %s",
		    num_format_duration_ms(p->late_ms / 1000 * 1000, time));
	for (size_t n = 0; n < json_length(parts); n++)
		add_part(json_at(parts, n), to);
}

// ---- work for the agent -------------------------------------------------------------------------

static bool policy_has_feeds(const char *instance)
{
	CLEANUP_IN_EFFECT struct in_effect *e = in_effect_new();
	CLEANUP_INPUTS struct inputs inputs = {0};

	if (in_effect_find(instance, e, NULL) || e->trial || !e->about.revision[0] ||
	    revisions_load_known(instance, e->about.revision, false, &e->record, &e->revision,
				 NULL))
		return false;
	inputs_read_feeds(e->revision.path, &e->record.reader, &inputs);
	return inputs.feeds.n;
}

static bool has_checks(const struct pool *pool)
{
	for (size_t n = 0; pool->live && n < pool->state->n_services; n++)
		if (pool->state->services[n].checked)
			return true;
	return false;
}

static void add_need(struct text *to, bool is, const char *what)
{
	if (is)
		text_addf(to, "%s%s", to->len ? ", " : "", what);
}

static void add_needs(const char *instance, const struct presence *p,
		      const struct status_names *names, const struct pool *pool,
		      const struct feed_lists *lists, struct text *to)
{
	const char *file = json_get_string(p->report, "file");

	add_need(to, names->names, "host names");
	add_need(to, lists->n || policy_has_feeds(instance), "feeds");
	add_need(to, has_checks(pool), "checks of backends");
	add_need(to, file && file_exists(file), file);
}

static void add_ended(const char *instance, const struct presence *p, const char *needs,
		      struct agent_problems *to)
{
	const char *error = json_get_string(p->report, "error");
	uint64_t now_s = (uint64_t)time(NULL), since_s = json_get_u64(p->report, "ended_s");
	num_text ago;

	num_format_duration_ms(now_s > since_s ? (now_s - since_s) * 1000 : 0, ago);
	if (error)
		add(to, start_again(instance, p),
		    "the agent failed %s ago: %s; it is missed for: %s", ago, error, needs);
	else
		add(to, start_again(instance, p),
		    "the agent ended %s ago and is missed for: %s; 'weir forget --agent' ends "
		    "this alarm",
		    ago, needs);
}

static void add_late_names(const struct status_names *names, struct agent_problems *to)
{
	num_text age, ttl;

	if (names->overdue)
		add(to, mem_strdup("weir refresh"),
		    "no agent runs, and %llu host %s overdue, such as %s: its answer is %s old, the "
		    "TTL is %s",
		    (unsigned long long)names->overdue,
		    num_plural(names->overdue, "name is", "names are"), names->late,
		    num_format_duration_ms(names->late_age_s * 1000, age),
		    num_format_duration_ms(names->late_ttl_s * 1000, ttl));
}

static void add_late_list(const char *instance, const struct feed_list *l, uint64_t now_s,
			  struct agent_problems *to)
{
	uint64_t good_s = status_since_boot_s(feed_list_good_s(instance, l), now_s);
	num_text age, every;

	if (!status_is_overdue(good_s, l->every_ms / 1000, now_s))
		return;
	add(to, mem_printf("weir -n %s run", instance),
	    "no agent runs, and list '%s' is overdue: it was fetched %s ago, and is to be each %s",
	    l->list, num_format_duration_ms((now_s - good_s) * 1000, age),
	    num_format_duration_ms(l->every_ms, every))
		->list = mem_strdup(l->list);
}

static void add_missed(const char *instance, const struct presence *p,
		       const struct status_names *names, const struct pool *pool,
		       const struct feed_lists *lists, struct agent_problems *to)
{
	CLEANUP_TEXT struct text needs = {0};

	if (p->ended)
		add_needs(instance, p, names, pool, lists, &needs);
	if (needs.len) {
		add_ended(instance, p, text_get(&needs), to);
		return;
	}
	add_late_names(names, to);
	vec_each (lists, list)
		add_late_list(instance, list, (uint64_t)time(NULL), to);
}

static void add_unread(const struct feed_lists *lists, struct agent_problems *to)
{
	vec_each (&lists->unread, one)
		add(to, mem_printf("weir block --url URL --sync NAME, or rm %s", one->path),
		    "%s: the list follows no feed", one->why.text)
			->list = mem_strdup(one->path);
}

void agent_problems_find(const char *instance, const struct presence *agent,
			 const struct status_names *names, const struct pool *pool,
			 struct agent_problems *ret)
{
	CLEANUP_FEED_LISTS struct feed_lists lists = {0};

	feed_lists_read(instance, &lists);
	add_unread(&lists, ret);
	if (agent->runs)
		add_running(instance, agent, ret);
	else if (agent->killed)
		add(ret, start_again(instance, agent), "the agent was killed or has crashed");
	else
		add_missed(instance, agent, names, pool, &lists, ret);
}
