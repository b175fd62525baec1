// SPDX-License-Identifier: GPL-2.0-only
// Finds the members of the running rings by address, gives them their health, and rewrites the
// rings that change.
#include "ctl/control/health_apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/control/lb_running.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/lock.h"

struct work {
	struct instance *instance;
	int lock;
	struct lb_maps *live, *before; // before: NULL unless a trial runs
	struct commit_state commit;
	struct clock clock;
	struct health_service *services;
	size_t n;
	uint64_t now_ms;
};

static void work_free(struct work *w)
{
	lb_maps_close(w->live);
	lb_maps_close(w->before);
	instance_free(w->instance);
	if (w->lock >= 0)
		close(w->lock);
}

static struct lb_member *member_of(struct lb_state *b, const struct lb_service *s,
				   const struct health_backend *h)
{
	return lb_state_find_member(b, s, h->addr.family ? &h->addr : NULL, h->port);
}

// ---- members ------------------------------------------------------------------------------------

// When it failed, as members have it.
static uint32_t tenths(uint64_t ms)
{
	return (uint32_t)((ms + 99) / 100);
}

// Its first check has ended, or it has waited long enough: then it is no longer new.
static void set_wait(struct lb_member *m, struct health *h)
{
	if (h->state == BACKEND_UP && !m->waits)
		h->fresh = false;
	if (h->state != BACKEND_UP || !h->fresh)
		m->waits = 0;
}

// True: something has changed.
static bool set_member(struct lb_member *m, struct health *h, uint8_t missing)
{
	const struct lb_member before = *m;

	m->health = h->state;
	m->cut = h->cut;
	m->missing = missing;
	m->failed = tenths(h->failed_ms);
	set_wait(m, h);
	return memcmp(&before, m, sizeof(before)) != 0;
}

// Applies the health to one service. Returns how many members changed.
static size_t set_members(const struct work *w, struct lb_state *b, const struct lb_service *s,
			  const struct health_service *h)
{
	size_t changed = 0;

	for (size_t i = 0; i < h->n; i++) {
		struct health *health = &h->backends[i].health;
		struct lb_member *m = member_of(b, s, &h->backends[i]);

		if (m && set_member(m, health, health_missing(health, &h->rules, w->now_ms)))
			changed++;
	}
	return changed;
}

// Into the state of l. ret_services: whose ring is to be changed, by index.
static size_t set_all(const struct work *w, struct lb_maps *l, bool *ret_services)
{
	struct lb_state *b = lb_maps_state(l);
	size_t changed = lb_state_end_waits(b, w->clock.jiffies, ret_services);

	for (size_t n = 0; n < w->n; n++) {
		const struct lb_service *s = lb_state_find(b, w->services[n].name);
		size_t more = s ? set_members(w, b, s, &w->services[n]) : 0;

		changed += more;
		if (more)
			ret_services[s - b->services] = true;
	}
	return changed;
}

void health_see_rings(struct lb_state *b, struct health_service *services, size_t n_services)
{
	for (size_t n = 0; n < n_services; n++) {
		struct health_service *h = &services[n];
		const struct lb_service *s = lb_state_find(b, h->name);
		CLEANUP_FREE bool *kept = s ? mem_zalloc(s->n_members, sizeof(*kept)) : NULL;

		if (s)
			lb_service_keep(b, s, kept);
		for (size_t i = 0; i < h->n; i++) {
			const struct lb_member *m = s ? member_of(b, s, &h->backends[i]) : NULL;
			uint8_t *ring = &h->backends[i].ring;

			*ring = m ? (uint8_t)lb_member_state(m) : h->backends[i].health.state;
			if (m && kept[m - &b->members[s->first_member]])
				*ring = BACKEND_UP;
		}
	}
}

static bool *flags_of(struct lb_maps *l)
{
	return mem_zalloc(lb_maps_state(l)->n_services, sizeof(bool));
}

static int use_some(struct lb_maps *l, const bool *some, struct err *err)
{
	const struct lb_state *b = lb_maps_state(l);
	int code;

	for (size_t n = 0; n < b->n_services; n++)
		if ((some[n] || b->services[n].torn) && (code = lb_maps_use(l, n, err)))
			return code;
	return 0;
}

static int write_live(const struct work *w, struct health_change *ret, struct err *err)
{
	CLEANUP_FREE bool *some = flags_of(w->live);
	int code;

	ret->members = set_all(w, w->live, some);
	if (!ret->members)
		return 0;
	if ((code = use_some(w->live, some, err)))
		return code;
	return lb_running_rewrite_some(w->live, &w->clock, some, &ret->slots, err);
}

static int write_trial(const struct work *w, struct health_change *ret, struct err *err)
{
	CLEANUP_FREE bool *some = flags_of(w->live), *some_before = flags_of(w->before);

	ret->members = set_all(w, w->live, some) + set_all(w, w->before, some_before);
	if (!ret->members)
		return 0;
	return lb_running_rewrite_trial(w->live, some, w->before, some_before, w->commit.deadline,
					&w->clock, &ret->slots, err);
}

// ---- what runs ----------------------------------------------------------------------------------

static bool two_policies(const struct commit_state *s)
{
	return s->deadline && !s->expired && s->active != s->previous &&
	       !commit_tries_interfaces(s);
}

// During a trial all slots; else write_live() takes the services that it changes.
static int open_running(struct work *w, const char *instance, const char *command, struct err *err)
{
	int code = lock_take(instance, command, &w->lock, err);
	bool two;

	if (code || (code = instance_open(instance, &w->instance, err)))
		return code;
	if ((code = commit_read(w->instance, &w->commit, err)))
		return code;
	two = two_policies(&w->commit) && w->commit.previous;
	if ((code = lb_maps_open(w->instance, w->commit.in_force,
				 two ? LB_SLOTS_ALL : LB_SLOTS_USED, &w->live, err)) ||
	    !w->live)
		return code;
	if (two &&
	    (code = lb_maps_open(w->instance, w->commit.previous, LB_SLOTS_ALL, &w->before, err)))
		return code;
	return instance_clock(w->instance, &w->clock, err);
}

int health_apply(const char *instance, const char *command, struct health_service *services,
		 size_t n, uint64_t now_ms, struct health_change *ret, struct err *err)
{
	CLEANUP(work_free)
	struct work w = {.lock = -1, .services = services, .n = n, .now_ms = now_ms};
	int code = open_running(&w, instance, command, err);

	*ret = (struct health_change){0};
	if (code == -ENOENT) {
		err_clear(err);
		return 0;
	}
	if (code || !w.live)
		return code;
	ret->generation = w.commit.in_force;
	code = w.before ? write_trial(&w, ret, err) : write_live(&w, ret, err);
	if (code)
		return code;
	health_see_rings(lb_maps_state(w.live), services, n);
	return 0;
}
