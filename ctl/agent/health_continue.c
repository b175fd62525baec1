// SPDX-License-Identifier: GPL-2.0-only
// What is known of a backend when its checks begin: from the previous targets, from the file of the
// previous agent, and from the kernel. Pure.
#include <string.h>

#include "ctl/agent/health_targets.h"

// No check of a new backend has ended.
bool health_is_waiting(const struct health_target *t)
{
	return t->backend->health.fresh && t->backend->health.state == BACKEND_UP;
}

// The file is written after the rings: the kernel may know of a change that the file does not have.
static void follow_kernel(struct health *health, const struct lb_member *m, uint64_t now)
{
	if (!m || m->health == health->state || m->health == BACKEND_DRAIN)
		return;
	health->state = m->health;
	health->cut = m->cut;
	health->since_ms = now;
	if (m->health != BACKEND_UP)
		health->failed_ms = now;
}

static void restore(struct health_target *t, const struct health *health,
		    const char why[HEALTH_WHY])
{
	t->backend->health = *health;
	memcpy(t->why, why, sizeof(t->why));
}

// New since an agent runs: it waits for its first check.
static void take_over_wait(struct health_target *t, const struct lb_member *m,
			   const struct clock *clock, uint64_t now)
{
	struct health *health = &t->backend->health;
	uint64_t left;

	if (health->state != BACKEND_UP)
		return;
	health->fresh = m && m->waits;
	if (!health->fresh)
		return;
	left = m->waits > clock->jiffies ? m->waits - clock->jiffies : 0;
	t->wait_ms = now + left * 1000 / clock->hz + HEALTH_WAIT_MORE_MS;
	health->known = false;
}

void health_continue(struct health_target *t, const struct health_target *was,
		     const struct health_record *record, const struct lb_member *member,
		     const struct clock *clock, uint64_t now_ms)
{
	if (was) {
		restore(t, &was->backend->health, was->why);
		t->counts = was->counts;
	} else if (record) {
		restore(t, &record->health, record->why);
	}
	if (!t->n_probes && !t->backend->health.cut) // nothing checks it
		t->backend->health = (struct health){0};
	if (t->n_probes && !was)
		follow_kernel(&t->backend->health, member, now_ms);
	if (t->n_probes)
		take_over_wait(t, member, clock, now_ms);
}
