// SPDX-License-Identifier: GPL-2.0-only
// The times of places, and the failures of their answers.
#include "ctl/agent/places_plan.h"

#include "ctl/base/log.h"
#include "ctl/base/num.h"

#define AGAIN_FIRST_MS 10000
#define AGAIN_MOST_MS  600000

void places_plan_free(struct places_plan *p)
{
	troubles_free(&p->troubles);
	plan_messages_free(&p->messages);
}

// ---- when ---------------------------------------------------------------------------------------

// A command may have repeated the refused change, so a problem is checked again.
void places_plan_listed(struct places_plan *p, size_t n, const struct plan_now *now)
{
	bool first = !p->n && n;

	p->n = n;
	if (first || (p->troubles.all.n && now->ms - p->asked_ms > AGAIN_FIRST_MS))
		p->due_ms = now->ms;
}

void places_plan_hurry(struct places_plan *p, const struct plan_now *now)
{
	if (p->n)
		p->due_ms = now->ms;
}

// One that is due while another one runs stays due.
bool places_plan_begin(struct places_plan *p, const struct plan_now *now)
{
	if (p->running)
		return false;
	p->running = true;
	p->due_ms = 0;
	p->asked_ms = now->ms;
	return true;
}

void places_plan_not_begun(struct places_plan *p)
{
	p->running = false;
}

// ---- answers ------------------------------------------------------------------------------------

static void take_failure(struct places_plan *p, const char *name, const char *why)
{
	if (troubles_note(&p->troubles, name, why))
		plan_say(&p->messages, log_warning, "%s; the previous prefixes stay in use", why);
}

static void say_change(struct places_plan *p, const struct refresh_name *row)
{
	if (row->added || row->released)
		plan_say(&p->messages, log_notice, "%s: %zu %s added, %zu removed", row->name,
			 row->added, num_plural(row->added, "prefix", "prefixes"), row->released);
	else if (troubles_why(&p->troubles, row->name))
		plan_say(&p->messages, log_notice, "%s follows its database again", row->name);
}

static void take_rows(struct places_plan *p, const struct refresh *r, bool failed)
{
	size_t n = 0;

	troubles_begin(&p->troubles);
	vec_each (r, row) {
		n += row->why[0] != '\0';
		if (row->why[0])
			take_failure(p, row->name, row->why);
		else
			say_change(p, row);
	}
	if (failed && !n)
		take_failure(p, "",
			     "countries and autonomous systems of entries cannot be looked for");
	troubles_end(&p->troubles, NULL, NULL);
}

void places_plan_answered(struct places_plan *p, const struct refresh *r, bool failed,
			  const struct plan_now *now)
{
	p->running = false;
	take_rows(p, r, failed);
	p->failures = p->troubles.all.n ? p->failures : 0;
	if (p->due_ms)
		p->due_ms = now->ms;
	else if (p->troubles.all.n)
		p->due_ms =
			now->ms + trouble_pause_ms(++p->failures, AGAIN_FIRST_MS, AGAIN_MOST_MS);
}
