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
#include "ctl/control/macs.h"
#include "ctl/control/overrides.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/lock.h"

void pool_close(struct pool *p)
{
	lb_maps_close(p->live);
	instance_free(p->instance);
	if (p->lock >= 0)
		close(p->lock);
	*p = (struct pool){.lock = -1};
}

// A trial has two rings; which of them somebody means nobody can tell.
static int refuse_trial(const struct pool *p, const struct commit_state *state, struct err *err)
{
	num_text left;

	if (!state->deadline)
		return 0;
	err_refused(err, "a trial runs and ends in %s",
		    num_format_duration_ms(clock_ms_until(&p->clock, state->deadline), left));
	err_hint(err, "weir confirm keeps it, weir rollback ends it");
	return -EBUSY;
}

static int open_live(struct pool *p, const struct commit_state *state, struct err *err)
{
	int code;

	p->generation = state->in_force;
	code = lb_maps_open(p->instance, p->generation, &p->live, err);
	if (code == -ENOENT) {
		err_input(err, "the policy in force has no services");
		return err_hint(
			err, "write one into its file, and apply it: service www { vip 192.0.2.10; "
			     "port 80; mode ipip; backend 10.0.0.11 }");
	}
	if (!code)
		p->state = lb_maps_state(p->live);
	return code;
}

static int settle(struct pool *p, struct err *err)
{
	int code = recover_trial(p->instance, err);

	return code ? code : recover_record(p->instance, err);
}

int pool_open(const char *instance, const char *command, struct pool *ret, struct err *err)
{
	CLEANUP_POOL struct pool p = {.lock = -1};
	struct commit_state state;
	int code = instance_open(instance, &p.instance, err);

	if (!code && command)
		code = lock_take(instance, command, &p.lock, err);
	if (!code && command)
		code = device_sync(p.instance, err);
	if (!code && command)
		code = macs_refresh(p.instance, err);
	if (!code && command)
		code = settle(&p, err);
	if (!code)
		code = instance_clock(p.instance, &p.clock, err);
	if (!code)
		code = commit_read(p.instance, &state, err);
	if (!code && command)
		code = refuse_trial(&p, &state, err);
	if (!code)
		code = open_live(&p, &state, err);
	if (!code) // what follows from it is written soon
		code = instance_clock(p.instance, &p.clock, err);
	if (!code && command)
		code = lb_running_tidy(p.live, &p.clock, NULL, NULL, err);
	if (code)
		return code;
	*ret = p;
	p = (struct pool){.lock = -1};
	return 0;
}

// ---- who is meant -------------------------------------------------------------------------------

const char *pool_name(const struct lb_member *m, addr_text buf)
{
	struct addr addr;

	lb_member_address(m, &addr);
	return addr.family ? addr_format(&addr, buf) : "here";
}

int pool_find_service(const struct pool *p, const char *name, size_t *ret, struct err *err)
{
	const struct lb_service *s = lb_state_find(p->state, name);
	struct text names = {0};

	if (s) {
		*ret = (size_t)(s - p->state->services);
		return 0;
	}
	for (size_t n = 0; n < p->state->n_services; n++)
		text_addf(&names, "%s%s", n ? ", " : "", p->state->services[n].name);
	err_input(err, "there is no service '%s'", name);
	err_hint(err, "services: %s", text_get(&names));
	text_free(&names);
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
	err_input(err, "'%s' is not the address of a backend", text);
	return err_hint(err,
			"an address looks like 192.0.2.1 or 2001:db8::1; weir service shows them");
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
	struct text names = {0};
	addr_text name;

	for (uint32_t m = 0; m < s->n_members; m++)
		text_addf(&names, "%s%s", m ? ", " : "",
			  pool_name(&p->state->members[s->first_member + m], name));
	err_hint(err, "backends: %s", text_get(&names));
	text_free(&names);
	return -EINVAL;
}

static int refuse_none(const struct pool *p, const char *service, const char *backend,
		       struct err *err)
{
	const struct lb_service *s = service ? lb_state_find(p->state, service) : NULL;

	if (!s) {
		err_input(err, "no service has a backend '%s'", backend);
		return err_hint(err, "weir service shows them");
	}
	err_input(err, "service '%s' has no backend '%s'", service, backend);
	return hint_backends(p, s, err);
}

static int refuse_service(const struct pool *p, const struct lb_service *s, struct err *err)
{
	err_input(err, "which backend of '%s'? BACKEND is missing", s->name);
	return hint_backends(p, s, err);
}

static int refuse_several(const struct pool *p, const struct pool_targets *found,
			  const char *backend, struct err *err)
{
	struct text names = {0};

	vec_each (found, t)
		text_addf(&names, "%s%s", t == found->at ? "" : ", ",
			  p->state->services[t->service].name);
	err_input(err, "'%s' is a backend of several services: %s", backend, text_get(&names));
	err_hint(err, "name one of them, or all with --all");
	text_free(&names);
	return -EINVAL;
}

int pool_find(const struct pool *p, const char *service, bool all, const char *backend,
	      struct pool_targets *ret, struct err *err)
{
	const struct lb_service *named = lb_state_find(p->state, backend);
	struct pool_targets found = {0};
	struct addr addr;
	size_t only = 0;
	int code = named && !service ? refuse_service(p, named, err)
				     : parse_backend(backend, &addr, err);

	if (!code && service)
		code = pool_find_service(p, service, &only, err);
	for (size_t n = 0; !code && n < p->state->n_services; n++)
		if (!service || n == only)
			find_in(p, n, &addr, &found);
	if (!code && !found.n)
		code = refuse_none(p, service, backend, err);
	else if (!code && found.n > 1 && !all)
		code = refuse_several(p, &found, backend, err);
	if (code)
		vec_free(&found);
	else
		*ret = found;
	return code;
}

// ---- changes and figures ------------------------------------------------------------------------

// What others have set stays as it is, also for services that do not run.
static int keep_overrides(const struct pool *p, const struct pool_targets *targets, struct err *err)
{
	struct overrides overrides = {0};
	int code = overrides_read(p->instance->name, &overrides, err);

	if (code)
		return code;
	vec_each (targets, t)
		overrides_put(&overrides, p->state->services[t->service].name,
			      &p->state->members[t->member]);
	code = overrides_write(p->instance->name, &overrides, err);
	vec_free(&overrides);
	if (code)
		err_hint(err, "--volatile changes the kernel alone");
	return code;
}

int pool_commit(struct pool *p, const struct pool_targets *targets, bool fleeting,
		struct pool_change *ret, struct err *err)
{
	CLEANUP_FREE bool *nobody = mem_zalloc(p->state->n_services, sizeof(*nobody));
	int code = fleeting ? 0 : keep_overrides(p, targets, err);

	if (code)
		return code;
	*ret = (struct pool_change){0};
	code = lb_running_rewrite(p->live, &p->clock, &ret->slots, nobody, err);
	for (size_t n = 0; n < p->state->n_services; n++)
		ret->kept_last |= nobody[n];
	return code;
}

int pool_pins(const struct pool *p, size_t service, uint32_t (*ret)[PIN_LEVEL + 1], struct err *err)
{
	struct service row;
	uint64_t *words;
	uint32_t time;
	size_t n;
	int code = lb_maps_pins(p->live, service, &words, &n, err);

	if (code)
		return code;
	lb_service_value(&p->state->services[service], p->clock.hz, &row);
	time = pin_time(p->clock.jiffies, row.pin_shift);
	for (size_t i = 0; i < n; i++) {
		uint64_t pin = __atomic_load_n(&words[i], __ATOMIC_RELAXED);

		if (pin_lives(pin, time, row.idle_most, row.linger))
			ret[pin_backend(pin)][pin_level(pin)]++;
	}
	return 0;
}
