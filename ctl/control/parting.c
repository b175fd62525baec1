// SPDX-License-Identifier: GPL-2.0-only
// Looks at the running balancer before its instance is removed.
#include "ctl/control/parting.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/overrides.h"
#include "ctl/datapath/commit.h"

// The members as attach would find them: with the overrides on disk.
static void take_kept_overrides(struct lb_state *b, const struct overrides *overrides,
				uint64_t wall_s)
{
	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];

		for (uint32_t i = 0; i < s->n_members; i++) {
			struct lb_member *m = &b->members[s->first_member + i];

			m->override = BACKEND_UP;
			m->weighed = 0;
			m->until_s = 0;
			lb_member_take_override(m, s->name, overrides->at, overrides->n, wall_s);
		}
	}
}

static int refuse(const struct lb_service *s, const struct lb_service_loss *loss,
		  const struct clock *now, struct err *err)
{
	uint64_t ms = loss->jiffies * 1000 / now->hz;
	num_text slots, time;

	if (loss->unsettled) {
		err_refused(
			err,
			"connections of service '%s' would break: %s of its slots are not stable, and their pins are lost with the instance",
			s->name, num_format_grouped(loss->unsettled, slots));
		if (ms)
			err_hint(err, "detach again after %s, or use detach --force",
				 num_format_duration_ms((ms + 999) / 1000 * 1000, time));
		else
			err_hint(
				err,
				"detach again when 'weir service' shows no pins for it, or use detach --force");
	} else {
		err_refused(
			err,
			"connections of service '%s' would break: the next attach would give %s of its slots to other backends",
			s->name, num_format_grouped(loss->other, slots));
		err_hint(
			err,
			"overrides set with --volatile are lost with the instance, and so is a ring that is kept because no backend accepts new flows; detach --force detaches anyway");
	}
	return -EBUSY;
}

static int check(struct lb_maps *l, const struct instance *i, const struct clock *now,
		 struct err *err)
{
	struct lb_state *b = lb_maps_state(l);
	CLEANUP_FREE struct lb_member *members = NULL;
	struct lb_state fresh = *b;
	CLEANUP_VEC struct overrides overrides = {0};

	members = mem_zalloc(b->n_members, sizeof(*members));
	memcpy(members, b->members, b->n_members * sizeof(*members));
	fresh.members = members;
	overrides_read(i->name, &overrides, NULL); // damaged: attach begins without it, too
	take_kept_overrides(&fresh, &overrides, now->wall_ms / 1000);
	for (size_t n = 0; n < b->n_services; n++) {
		struct lb_service_loss loss;

		lb_service_loss(&fresh, &b->services[n], now->jiffies, now->hz, &loss);
		if (loss.unsettled || loss.other)
			return refuse(&b->services[n], &loss, now, err);
	}
	return 0;
}

// *ret NULL: no policy with services is active.
static int open_tidy(const struct instance *i, struct lb_maps **ret, struct clock *now,
		     struct err *err)
{
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if ((code = lb_maps_open(i, state.in_force, LB_SLOTS_ALL, ret, err)) || !*ret)
		return code;
	if ((code = instance_clock(i, now, err)))
		return code;
	// During a trial two rings exist, and either may take over: neither is changed.
	return state.deadline ? 0 : lb_running_tidy(*ret, now, NULL, NULL, err);
}

// Connections of nat and fullnat exist only in the table of the instance.
static int check_nat(const struct instance *i, struct err *err)
{
	CLEANUP_NAT_READING struct nat_reading r = {0};
	size_t talking = 0;
	num_text number;
	int code = nat_read(i, &r, err);

	if (code)
		return code;
	for (size_t b = 0; b < SERVICE_BACKENDS; b++)
		talking += r.census.of_backend[b].living - r.census.of_backend[b].closed;
	if (!talking)
		return 0;
	err_refused(err, "%s %s of nat and fullnat would end with the instance",
		    num_format_grouped(talking, number),
		    num_plural(talking, "connection", "connections"));
	err_hint(err, "detach again when 'weir status' shows none, or use detach --force");
	return -EBUSY;
}

int parting_check(const struct instance *i, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	struct clock now;
	int code = open_tidy(i, &l, &now, err);

	if (code && !err->hint[0])
		err_hint(err, "weir detach --force does not check connections");
	if (code || !l || (code = check_nat(i, err)))
		return code;
	return check(l, i, &now, err);
}
