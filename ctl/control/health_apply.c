// SPDX-License-Identifier: GPL-2.0-only
// Finds the members of the running rings by address, gives them their health, and rewrites the rings that change.
#include "ctl/control/health_apply.h"

#include <errno.h>
#include <stdlib.h>
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

// ---- the guard ----------------------------------------------------------------------------------

static void guard_service(struct lb_state *b, const struct lb_service *s, struct health_service *h)
{
	CLEANUP_FREE struct health_share *shares = mem_zalloc(h->n, sizeof(*shares));

	for (size_t i = 0; i < h->n; i++) {
		struct health_backend *backend = &h->backends[i];
		const struct lb_member *m = member_of(b, s, backend);

		backend->member = m && !m->gone;
		backend->drained = m && m->override != BACKEND_UP;
		shares[i] = (struct health_share){
			.health = &backend->health,
			.weight = m ? lb_member_weight(m) : 0,
			.exempt = !backend->member || backend->drained,
			.backup = m && m->backup,
		};
	}
	h->kept = health_guard(shares, h->n, h->keep);
}

static void guard_all(const struct work *w, struct lb_state *b)
{
	for (size_t n = 0; n < w->n; n++) {
		const struct lb_service *s = lb_state_find(b, w->services[n].name);

		if (s)
			guard_service(b, s, &w->services[n]);
	}
}

// ---- members ------------------------------------------------------------------------------------

// Of one service. Returns how many members changed.
static size_t set_members(const struct work *w, struct lb_state *b, const struct lb_service *s,
			  const struct health_service *h)
{
	size_t changed = 0;

	for (size_t i = 0; i < h->n; i++) {
		const struct health *health = &h->backends[i].health;
		struct lb_member *m = member_of(b, s, &h->backends[i]);
		uint8_t state = (uint8_t)health_counts_as(health);
		uint8_t missing = health_missing(health, &h->rules, w->now_ms);

		if (!m || (m->health == state && m->missing == missing))
			continue;
		m->health = state;
		m->missing = missing;
		changed++;
	}
	return changed;
}

// Into the state of l. ret_services: whose ring is to be changed, by index.
static size_t set_all(const struct work *w, struct lb_maps *l, bool *ret_services)
{
	struct lb_state *b = lb_maps_state(l);
	size_t changed = 0;

	for (size_t n = 0; n < w->n; n++) {
		const struct lb_service *s = lb_state_find(b, w->services[n].name);
		size_t more = s ? set_members(w, b, s, &w->services[n]) : 0;

		changed += more;
		if (more)
			ret_services[s - b->services] = true;
	}
	return changed;
}

static bool *flags_of(struct lb_maps *l)
{
	return mem_zalloc(lb_maps_state(l)->n_services, sizeof(bool));
}

static int write_live(const struct work *w, struct health_change *ret, struct err *err)
{
	CLEANUP_FREE bool *some = flags_of(w->live);

	ret->members = set_all(w, w->live, some);
	if (!ret->members)
		return 0;
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

static int open_maps(const struct work *w, uint32_t generation, struct lb_maps **ret,
		     struct err *err)
{
	int code = lb_maps_open(w->instance, generation, ret, err);

	return code == -ENOENT ? 0 : code; // it has no services
}

static bool two_policies(const struct commit_state *s)
{
	return s->deadline && !s->expired && s->active != s->previous &&
	       !commit_tries_interfaces(s);
}

static int open_running(struct work *w, const char *instance, const char *command, struct err *err)
{
	int code = lock_take(instance, command, &w->lock, err);

	if (code || (code = instance_open(instance, &w->instance, err)))
		return code;
	if ((code = commit_read(w->instance, &w->commit, err)))
		return code;
	if (!w->commit.in_force)
		return 0;
	if ((code = open_maps(w, w->commit.in_force, &w->live, err)))
		return code;
	if (w->live && two_policies(&w->commit) && w->commit.previous &&
	    (code = open_maps(w, w->commit.previous, &w->before, err)))
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
	guard_all(&w, lb_maps_state(w.live));
	return w.before ? write_trial(&w, ret, err) : write_live(&w, ret, err);
}
