// SPDX-License-Identifier: GPL-2.0-only
// Opens the running pool, finds backends in it, and commits overrides.
#include "ctl/control/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/macs.h"
#include "ctl/control/overrides.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/lock.h"

void pool_close(struct pool *p)
{
	lb_maps_close(p->live);
	instance_free(p->instance);
	if (p->lock >= 0)
		close(p->lock);
	*p = (struct pool){.lock = -1};
}

// Refuses changes during a trial: a trial has two rings, and the operator may mean either.
static int refuse_trial(const struct pool *p, const struct commit_state *state, struct err *err)
{
	num_text left;

	if (!state->deadline)
		return 0;
	err_refused(err, "a trial is running and ends in %s",
		    num_format_duration_ms(clock_ms_until(&p->clock, state->deadline), left));
	err_hint(err, "weir confirm keeps it, weir rollback ends it");
	return -EBUSY;
}

// State of a caller of the pool.
enum pool_part {
	POOL_ALL,
	POOL_FEW,
	POOL_PATHS,
};

static int open_live(struct pool *p, const struct commit_state *state, enum pool_part part,
		     struct err *err)
{
	int code;

	p->generation = state->in_force;
	code = lb_maps_open(p->instance, p->generation,
			    part == POOL_ALL ? LB_SLOTS_ALL : LB_SLOTS_USED, &p->live, err);
	if (code)
		return code;
	if (!p->live) {
		err_input(err, "the active policy has no services");
		return err_hint(err, "add one to the policy file and apply it: service www { vip "
				     "192.0.2.10; port 80; mode ipip; backend 10.0.0.11 }");
	}
	p->state = lb_maps_state(p->live);
	return 0;
}

// Takes the lock and ends what earlier commands left unfinished.
static int lock_for_change(struct pool *p, const char *instance, const char *command,
			   struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = lock_take(instance, command, &p->lock, err);

	if (code)
		return code;
	if ((code = devices_sync(p->instance, &devices, err)))
		return code;
	if ((code = macs_write(p->instance, &devices, err)))
		return code;
	if ((code = recover_trial(p->instance, err)))
		return code;
	return recover_record(p->instance, err);
}

// The services in which something has expired.
static int take_due(const struct pool *p, struct err *err)
{
	for (size_t n = 0; n < p->state->n_services; n++) {
		int code = 0;

		if (lb_service_is_due(p->state, &p->state->services[n], p->clock.jiffies,
				      p->clock.wall_ms / 1000))
			code = lb_maps_use(p->live, n, err);
		if (code)
			return code;
	}
	return 0;
}

int pool_take(struct pool *p, const struct pool_targets *targets, struct err *err)
{
	int code = p->lock >= 0 ? take_due(p, err) : 0;

	if (code)
		return code;
	vec_each (targets, t)
		if ((code = lb_maps_use(p->live, t->service, err)))
			return code;
	return p->lock >= 0 ? lb_running_tidy(p->live, &p->clock, NULL, NULL, err) : 0;
}

static int open_pool(const char *instance, const char *command, enum pool_part part,
		     struct pool *ret, struct err *err)
{
	CLEANUP_POOL struct pool p = {.lock = -1};
	struct commit_state state;
	int code = instance_open(instance, &p.instance, err);

	if (code)
		return code;
	if (command && (code = lock_for_change(&p, instance, command, err)))
		return code;
	if ((code = instance_clock(p.instance, &p.clock, err)))
		return code;
	if ((code = commit_read(p.instance, &state, err)))
		return code;
	if (command && part != POOL_PATHS && (code = refuse_trial(&p, &state, err)))
		return code;
	if ((code = open_live(&p, &state, part, err)))
		return code;
	// Opening takes time: values computed from the clock are written soon after this reading.
	if ((code = instance_clock(p.instance, &p.clock, err)))
		return code;
	if (command && part == POOL_ALL &&
	    (code = lb_running_tidy(p.live, &p.clock, NULL, NULL, err)))
		return code;
	*ret = p;
	p = (struct pool){.lock = -1};
	return 0;
}

int pool_open(const char *instance, const char *command, struct pool *ret, struct err *err)
{
	return open_pool(instance, command, POOL_ALL, ret, err);
}

int pool_open_few(const char *instance, const char *command, struct pool *ret, struct err *err)
{
	return open_pool(instance, command, POOL_FEW, ret, err);
}

int pool_open_paths(const char *instance, const char *command, struct pool *ret, struct err *err)
{
	return open_pool(instance, command, POOL_PATHS, ret, err);
}

// ---- which backends are meant -------------------------------------------------------------------

const char *pool_name(const struct lb_member *m, addr_text buf)
{
	struct addr addr;

	lb_member_address(m, &addr);
	return addr.family ? addr_format(&addr, buf) : "here";
}

int pool_find_service(const struct pool *p, const char *name, size_t *ret, struct err *err)
{
	const struct lb_service *s = lb_state_find(p->state, name);
	CLEANUP_TEXT struct text names = {0};

	if (s) {
		*ret = (size_t)(s - p->state->services);
		return 0;
	}
	for (size_t n = 0; n < p->state->n_services; n++)
		text_addf(&names, "%s%s", n ? ", " : "", p->state->services[n].name);
	err_input(err, "service '%s' not found", name);
	err_hint(err, "services: %s", text_get(&names));
	return -EINVAL;
}

static int parse_backend(const char *text, struct addr *ret, struct err *err)
{
	bool mapped;

	if (!strcmp(text, "here")) {
		*ret = (struct addr){0};
		return 0;
	}
	if (!addr_parse(text, strlen(text), ret, &mapped))
		return 0;
	err_input(err, "'%s' is not a backend address", text);
	return err_hint(
		err, "an address looks like 192.0.2.1 or 2001:db8::1; weir service lists backends");
}

static void find_in(const struct pool *p, size_t service, const struct addr *addr,
		    struct pool_targets *ret)
{
	const struct lb_service *s = &p->state->services[service];
	const struct lb_member *m =
		lb_state_find_member(p->state, s, addr->family ? addr : NULL, 0);

	if (m)
		vec_push(ret, ((struct pool_target){service, (size_t)(m - p->state->members)}));
}

static int hint_backends(const struct pool *p, const struct lb_service *s, struct err *err)
{
	CLEANUP_TEXT struct text names = {0};
	addr_text name;

	for (uint32_t m = 0; m < s->n_members; m++)
		text_addf(&names, "%s%s", m ? ", " : "",
			  pool_name(&p->state->members[s->first_member + m], name));
	err_hint(err, "backends: %s", text_get(&names));
	return -EINVAL;
}

static int refuse_none(const struct pool *p, const char *service, const char *backend,
		       struct err *err)
{
	const struct lb_service *s = service ? lb_state_find(p->state, service) : NULL;

	if (!s) {
		err_input(err, "no service has a backend '%s'", backend);
		return err_hint(err, "weir service lists backends");
	}
	err_input(err, "service '%s' has no backend '%s'", service, backend);
	return hint_backends(p, s, err);
}

static int refuse_service(const struct pool *p, const struct lb_service *s, struct err *err)
{
	err_input(err, "missing BACKEND for service '%s'", s->name);
	return hint_backends(p, s, err);
}

static int refuse_several(const struct pool *p, const struct pool_targets *found,
			  const char *backend, struct err *err)
{
	CLEANUP_TEXT struct text names = {0};

	vec_each (found, t)
		text_addf(&names, "%s%s", t == found->at ? "" : ", ",
			  p->state->services[t->service].name);
	err_input(err, "'%s' is a backend of several services: %s", backend, text_get(&names));
	err_hint(err, "name one of them, or all with --all");
	return -EINVAL;
}

int pool_find(const struct pool *p, const char *service, bool all, const char *backend,
	      struct pool_targets *ret, struct err *err)
{
	const struct lb_service *named = lb_state_find(p->state, backend);
	CLEANUP_VEC struct pool_targets found = {0};
	struct addr addr;
	size_t first = 0, end = p->state->n_services;
	int code;

	if (named && !service)
		return refuse_service(p, named, err);
	if ((code = parse_backend(backend, &addr, err)))
		return code;
	if (service) {
		if ((code = pool_find_service(p, service, &first, err)))
			return code;
		end = first + 1;
	}
	for (size_t n = first; n < end; n++)
		find_in(p, n, &addr, &found);
	if (!found.n)
		return refuse_none(p, service, backend, err);
	if (found.n > 1 && !all)
		return refuse_several(p, &found, backend, err);
	*ret = found;
	found = (struct pool_targets){0};
	return 0;
}

// ---- changes and figures ------------------------------------------------------------------------

// Other overrides do not change, nor overrides of services that do not run.
static int keep_overrides(const struct pool *p, const struct pool_targets *targets, struct err *err)
{
	CLEANUP_VEC struct overrides overrides = {0};
	int code = overrides_read(p->instance->name, &overrides, err);

	if (code)
		return code;
	vec_each (targets, t)
		overrides_put(&overrides, p->state->services[t->service].name,
			      &p->state->members[t->member]);
	code = overrides_write(p->instance->name, &overrides, err);
	if (code)
		err_hint(err, "--volatile changes only the kernel");
	return code;
}

int pool_commit(struct pool *p, const struct pool_targets *targets, bool fleeting,
		size_t *ret_slots, struct err *err)
{
	int code = fleeting ? 0 : keep_overrides(p, targets, err);

	return code ? code : lb_running_rewrite(p->live, &p->clock, ret_slots, err);
}

int pool_pins(const struct pool *p, size_t service, uint32_t (*ret)[PIN_LEVEL + 1], struct err *err)
{
	CLEANUP_MAPPING struct mapping words = {0};
	struct service value;
	uint32_t time;
	size_t n;
	int code = lb_maps_pins(p->live, service, &words, &n, err);

	if (code)
		return code;
	lb_service_value(&p->state->services[service], p->clock.hz, &value);
	time = pin_time(p->clock.jiffies, value.pin_shift);
	for (size_t i = 0; i < n; i++) {
		uint64_t pin = __atomic_load_n((uint64_t *)words.at + i, __ATOMIC_RELAXED);

		if (pin_lives(pin, time, value.life_most, value.linger))
			ret[pin_backend(pin)][pin_level(pin)]++;
	}
	return 0;
}
