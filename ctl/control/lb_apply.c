// SPDX-License-Identifier: GPL-2.0-only
// The services of a policy on the way through the switch, planned around those that run.
#include "ctl/control/lb_apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/nat_sources.h"
#include "ctl/control/nexthops.h"
#include "ctl/control/overrides.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/seed.h"

#define SWITCH_MS  30000  // from the plan to the switch, at most,
#define PATIENT_MS 300000 // and for who knows that it takes long

void lb_apply_free(struct lb_apply *s)
{
	lb_maps_close(s->running);
	lb_state_free(s->lb);
	free(s->backends);
	free(s->nexthops);
	nat_apply_free(&s->nat);
	sentences_free(&s->warnings);
}

static uint32_t switch_ms(const struct lb_apply *s)
{
	return s->options.patient ? PATIENT_MS : SWITCH_MS;
}

// ---- next hops ----------------------------------------------------------------------------------

static size_t count_backends(const struct resolved *r)
{
	size_t n = 0;

	for (size_t s = 0; s < r->n_services; s++)
		n += r->services[s].n_backends;
	return n;
}

int lb_apply_find_nexthops(struct lb_apply *s, const struct resolved *r, uint32_t wait_ms,
			   struct err *err)
{
	CLEANUP_FREE struct addr *dests = mem_zalloc(count_backends(r), sizeof(*dests));
	size_t n = 0;

	for (size_t v = 0; v < r->n_services; v++)
		for (size_t b = 0; b < r->services[v].n_backends; b++)
			dests[n++] = r->services[v].backends[b].addr;
	free(s->nexthops);
	s->nexthops = mem_zalloc(n, sizeof(*s->nexthops));
	s->n_nexthops = n;
	return nexthops_find(dests, n, wait_ms, s->nexthops, err);
}

// The backends of the policy's members. Members of a service are in its order, followed by the gone
// ones: those keep their number.
static void fill_backends(struct lb_apply *s, const struct resolved *r)
{
	size_t hop = 0;

	s->backends = mem_zalloc(SERVICE_BACKENDS, sizeof(*s->backends));
	for (size_t v = 0; v < r->n_services; v++) {
		const struct resolved_service *from = &r->services[v];
		const struct lb_service *to = &s->lb->services[v];
		CLEANUP_FREE uint8_t *states = mem_zalloc(to->n_members, sizeof(*states));

		lb_member_states(s->lb, to, states);
		for (uint32_t m = 0; m < to->n_members; m++) {
			const struct lb_member *member = &s->lb->members[to->first_member + m];
			struct backend *fresh = &s->backends[member->id];
			const struct backend *old =
				s->running ? lb_maps_backend(s->running, member->id) : NULL;
			struct nexthops_source source = {from->source, from->n_source, from->mode};
			char *why = NULL;

			if (m < from->n_backends)
				nexthops_backend(member, &source,
						 s->n_nexthops ? &s->nexthops[hop + m] : NULL, old,
						 fresh, &why);
			else if (old)
				*fresh = *old;
			fresh->state = states[m];
			if (why)
				sentences_add(&s->warnings,
					      mem_printf("service '%s': %s", to->name, why));
			free(why);
		}
		hop += from->n_backends;
	}
}

// ---- the plan -----------------------------------------------------------------------------------

static int look_around(struct lb_apply *s, const struct instance *i, uint32_t running,
		       bool **ret_pinned, struct lb_ids *busy, struct overrides *overrides,
		       struct err *err)
{
	// Without the overrides a drained backend would silently get connections again.
	int code = i ? overrides_read(i->name, overrides, err) : 0;

	if (code)
		return code;
	if (i && (code = nat_apply_look(&s->nat, i, busy, err)))
		return code;
	if (i && (code = lb_maps_open(i, running, LB_SLOTS_ALL, &s->running, err)))
		return code;
	if (!s->running)
		return 0;
	*ret_pinned = mem_zalloc(lb_maps_state(s->running)->n_services, sizeof(**ret_pinned));
	if ((code = instance_clock(i, &s->clock, err))) // what follows from it is written soon
		return code;
	return lb_running_tidy(s->running, &s->clock, *ret_pinned, busy, err);
}

static int check_bytes(uint64_t bytes, const char *what, const char *hint, struct err *err)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
	num_text want, have;

	if (bytes <= pages * page / 2)
		return 0;
	err_input(err, "the %s of all services need %s, more than half of the %s of this machine",
		  what, num_format_bytes(bytes, want), num_format_bytes(pages * page, have));
	err_hint(err, "%s", hint);
	return -EINVAL;
}

// The pins and the connections of all services together.
static int check_memory(const struct lb_apply *s, struct err *err)
{
	int code = check_bytes(
		lb_state_pin_bytes(s->lb), "pins",
		"'pins N' in a service: four times the flows that are expected in change", err);

	if (code || !s->nat.plan)
		return code;
	return check_bytes(nat_wish_bytes(&s->nat.plan->wish), "places for connections",
			   "'connections N' in a service of mode nat", err);
}

static bool is_nat(uint8_t mode)
{
	return service_mode_does((enum service_mode)mode) & MODE_NAT;
}

static uint64_t trial_end(const struct lb_apply *s)
{
	return s->clock.jiffies + (s->options.trial_ms + switch_ms(s)) * s->clock.hz / 1000;
}

// Flows that are silent for longer than `idle` are not remembered, neither on the way there nor
// back.
static int check_trial(const struct lb_apply *s, const struct resolved *r, struct err *err)
{
	for (size_t n = 0; n < r->n_services; n++) {
		const struct resolved_service *v = &r->services[n];
		bool tcp = v->proto.bits[0] >> 6 & 1 || v->proto.bits[2] >> 4 & 1;
		uint64_t idle_ms = tcp ? v->idle_tcp_ms : v->idle_udp_ms;
		num_text time;

		if (s->options.trial_ms <= idle_ms || is_nat(v->mode) ||
		    !lb_state_find(lb_maps_state(s->running), v->name))
			continue;
		err_refused(err,
			    "service '%s' remembers silent flows for %s: a trial of it may take "
			    "no longer",
			    v->name, num_format_duration_ms(idle_ms, time));
		err_hint(err, "a shorter --confirm, or --force");
		return -EPERM;
	}
	return 0;
}

// Slots that are changing stay so through a trial: the plan takes them over, and the previous ring
// gets them with the way back.
static int extend_changes(const struct lb_apply *s, const struct resolved *r, struct err *err)
{
	struct lb_state *b = lb_maps_state(s->running);
	uint64_t now = s->clock.jiffies, end = trial_end(s);
	int code = s->options.force ? 0 : check_trial(s, r, err);

	if (code)
		return code;

	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *service = &b->services[n];
		struct ring_rules rules = lb_service_rules(service, now, s->clock.hz);

		ring_extend(b->slots + service->first_slot, service->size, end, &rules);
	}
	return 0;
}

// A seed that was kept and is damaged would bring other rings than those before, in silence.
static int check_seed(const struct resolved *r, const struct instance *i, struct err *err)
{
	struct hash_key key;

	return i && r->n_services && !r->seed ? seed_read(i->name, &key, err) : 0;
}

// Makes the running state current and keeps its changing slots open until the switch.
static int prepare_running(struct lb_apply *s, const struct resolved *r, struct err *err)
{
	int code;

	if (!s->running)
		return 0;
	if ((code = lb_running_guard(s->running, &s->clock, switch_ms(s), err)))
		return code;
	return s->options.trial_ms ? extend_changes(s, r, err) : 0;
}

static int plan_state(struct lb_apply *s, const struct resolved *r, const struct lb_ids *busy,
		      const bool *pinned, const struct overrides *overrides, struct diag *d,
		      struct err *err)
{
	const struct lb_plan_options options = {
		.running = s->running ? lb_maps_state(s->running) : NULL,
		.busy = busy,
		.pinned = pinned,
		.overrides = overrides->at,
		.n_overrides = overrides->n,
		.key = s->key,
		.now = s->clock.jiffies,
		.wall_s = s->clock.wall_ms / 1000,
		.hz = s->clock.hz,
		.agent = s->options.agent,
		.force = s->options.force,
		.trial = s->options.trial_ms != 0,
		.room = s->running && s->options.trial_ms ? lb_maps_backends(s->running) : 0,
	};
	int code = lb_plan(r, &options, d, &s->lb);

	if (code)
		err_refused(err, "the services cannot follow the running ones; nothing was "
				 "changed");
	return code;
}

static int plan_connections(struct lb_apply *s, const struct resolved *r, const struct instance *i,
			    struct diag *d, struct err *err)
{
	const struct nat_apply_options o = {s->options.force, s->options.trial_ms != 0};
	int code = nat_apply_plan(&s->nat, r, s->lb, i, o, d, err);

	if (code || (code = check_memory(s, err)) || !s->nat.plan)
		return code;
	nat_sources_warn(&s->nat.plan->wish, s->lb, &s->warnings);
	return i ? nat_apply_prepare(&s->nat, i, &s->clock, err) : 0;
}

int lb_apply_plan(struct lb_apply *s, const struct resolved *r, const struct instance *i,
		  uint32_t running, struct diag *d, struct err *err)
{
	CLEANUP_FREE struct lb_ids *busy = mem_new(struct lb_ids);
	CLEANUP_FREE bool *pinned = NULL;
	CLEANUP_VEC struct overrides overrides = {0};
	int code = check_seed(r, i, err);

	if (code)
		return code;
	s->clock = (struct clock){.hz = clock_hz()};
	s->options.agent = i && lock_agent_runs(i->name);
	if (i && (code = instance_clock(i, &s->clock, err)))
		return code;
	if (i)
		s->key = (struct hash_key){{i->meta.ring_key[0], i->meta.ring_key[1]}};
	if ((code = look_around(s, i, running, &pinned, busy, &overrides, err)))
		return code;
	if ((code = prepare_running(s, r, err)))
		return code;
	if ((code = plan_state(s, r, busy, pinned, &overrides, d, err)))
		return code;
	if ((code = plan_connections(s, r, i, d, err)))
		return code;
	fill_backends(s, r);
	s->load = (struct lb_load){
		.lb = s->lb,
		.backends = s->backends,
		.running = s->running,
		.uses = s->nat.plan ? s->nat.plan->use : NULL,
		.wish = s->nat.plan ? &s->nat.plan->wish : NULL,
		.hz = s->clock.hz,
	};
	lb_ids_new(s->lb, s->running ? lb_maps_state(s->running) : NULL, &s->load.fresh);
	return 0;
}

int lb_apply_plan_answers(struct lb_apply *s, const struct resolved *r, const struct instance *i,
			  bool *ret, struct diag *d, struct err *err)
{
	CLEANUP_FREE struct lb_ids *busy = mem_new(struct lb_ids);
	const struct nat_apply_options o = {s->options.force, true};
	int code = nat_apply_look(&s->nat, i, busy, err);

	if (code || (code = nat_apply_plan(&s->nat, r, NULL, i, o, d, err)))
		return code;
	*ret = s->nat.plan != NULL;
	if (s->nat.plan)
		s->load = (struct lb_load){
			.uses = s->nat.plan->use,
			.wish = &s->nat.plan->wish,
			.hz = clock_hz(),
		};
	return 0;
}

// ---- the switch ---------------------------------------------------------------------------------

// The plan took slots for what they were then.
static int check_time(const struct lb_apply *s, const struct instance *i, struct err *err)
{
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code || now.jiffies - s->clock.jiffies < (uint64_t)switch_ms(s) * now.hz / 1000)
		return code;
	return err_stated(err, ETIME, "the policy took more than %u s to load",
			  switch_ms(s) / 1000);
}

// Pins that the policy on trial writes may name its new backends: the one before has to know those.
// Where both have one array it does already.
static int share_backends(struct lb_apply *s, struct err *err)
{
	for (size_t m = 0; m < s->lb->n_members; m++) {
		uint32_t id = s->lb->members[m].id;

		if (lb_ids_has(&s->load.fresh, id) &&
		    !lb_maps_set_backend(s->running, id, &s->backends[id]))
			return err_stated(err, ENOSPC,
					  "the active policy has no room for backend %u", id);
	}
	return 0;
}

// Backends are shared, devices are not: the previous ring also needs the devices that the trial
// sends through.
static int share_devices(struct lb_apply *s, struct err *err)
{
	uint32_t last = 0;

	for (size_t m = 0; m < s->lb->n_members; m++) {
		uint32_t ifindex = s->backends[s->lb->members[m].id].ifindex;
		int code = 0;

		if (ifindex && ifindex != last)
			code = lb_maps_add_device(s->running, ifindex, err);
		if (code) {
			err_prefix(err, "the active policy cannot take over after the trial");
			return code;
		}
		last = ifindex;
	}
	return 0;
}

int lb_apply_before(struct lb_apply *s, const struct instance *i, bool fleeting, struct err *err)
{
	int code = s->lb && !fleeting ? seed_keep(i->name, &s->key, err) : 0;

	if (code || !s->running)
		return code;
	code = check_time(s, i, err);
	if (code || !s->options.trial_ms)
		return code;
	if ((code = share_devices(s, err)) || (code = share_backends(s, err)))
		return code;
	lb_running_way_back(lb_maps_state(s->running), s->lb, &s->clock);
	return lb_maps_write(s->running, s->clock.hz, err);
}

static void close_members(struct lb_maps *l, const struct lb_state *b, const struct lb_service *s,
			  const struct lb_ids *kept)
{
	for (uint32_t m = s->first_member; m < s->first_member + s->n_members; m++)
		if (!lb_ids_has(kept, b->members[m].id))
			lb_maps_set_state(l, b->members[m].id, BACKEND_DOWN);
}

// A pin that names a forgotten backend may live once more, when `idle` has grown: its flow goes to
// the owner. A connection of nat stays as it began.
static void close_forgotten(const struct lb_apply *s, struct lb_maps *l)
{
	const struct lb_state *before = s->running ? lb_maps_state(s->running) : NULL;
	struct lb_ids kept = {0};

	if (!before || s->options.trial_ms)
		return;
	lb_ids_of(s->lb, &kept);
	for (size_t n = 0; n < before->n_services; n++)
		if (!is_nat(before->services[n].mode))
			close_members(l, before, &before->services[n], &kept);
}

static bool is_changing(const struct lb_state *b, const struct lb_service *s)
{
	for (uint32_t n = 0; n < s->size; n++)
		if (slot_former(b->slots[s->first_slot + n]))
			return true;
	return false;
}

// Slots that change by the plan start changing at the switch.
static void restart_slots(struct lb_state *b, const struct lb_service *s, uint64_t planned,
			  uint64_t now)
{
	for (uint32_t n = 0; n < s->size; n++) {
		uint64_t *slot = &b->slots[s->first_slot + n];

		if (slot_former(*slot) && slot_since(*slot) == slot_time(planned))
			*slot = slot_pack(slot_owner(*slot), slot_former(*slot), slot_time(now));
	}
}

// The rings of services whose slots all are stable in the plan are not read: nothing else has
// changed them.
static int restart_clock(const struct lb_apply *s, struct lb_maps *l, uint64_t now, struct err *err)
{
	struct lb_state *b = lb_maps_state(l);
	int code;

	for (size_t n = 0; n < b->n_services; n++) {
		if (!is_changing(s->lb, &s->lb->services[n]))
			continue;
		if ((code = lb_maps_use(l, n, err)))
			return code;
		restart_slots(b, &b->services[n], s->clock.jiffies, now);
	}
	return 0;
}

static int write_after(struct lb_apply *s, const struct instance *i, uint32_t generation,
		       struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	struct lb_state *b;
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code)
		return code;
	if ((code = lb_maps_open(i, generation, LB_SLOTS_USED, &l, err)) || !l)
		return code;
	b = lb_maps_state(l);
	for (size_t m = 0; m < b->n_members; m++)
		if (b->members[m].waits)
			b->members[m].waits += now.jiffies - s->clock.jiffies;
	for (size_t m = 0; m < b->n_members; m++)
		lb_maps_set_backend(l, b->members[m].id, &s->backends[b->members[m].id]);
	close_forgotten(s, l);
	if ((code = restart_clock(s, l, now.jiffies, err)))
		return code;
	return lb_maps_write(l, now.hz, err);
}

int lb_apply_after(struct lb_apply *s, const struct instance *i, uint32_t generation,
		   struct err *err)
{
	int code = write_after(s, i, generation, err);

	return code ? code : nat_settle(i, &s->freed, err);
}

// Both policies have the same backends, and the one on trial wrote them last.
static int write_back(const struct instance *i, uint32_t generation, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	struct clock now;
	int code;

	if ((code = instance_clock(i, &now, err)))
		return code;
	if ((code = lb_maps_open(i, generation, LB_SLOTS_ALL, &l, err)) || !l)
		return code;
	return lb_maps_write(l, now.hz, err);
}

int lb_apply_back(const struct instance *i, uint32_t generation, struct err *err)
{
	int code = write_back(i, generation, err);

	return code ? code : nat_settle(i, NULL, err);
}
