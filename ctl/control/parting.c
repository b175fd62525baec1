// SPDX-License-Identifier: GPL-2.0-only
// Looks at the running balancer before its instance is removed.
#include "ctl/control/parting.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/control/lb_apply.h"
#include "ctl/control/overrides.h"
#include "ctl/datapath/commit.h"

// As attach finds the members: with what is on disk.
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
		err_refused(err,
			    "connections of service '%s' would break: %s of its slots are not "
			    "stable, and what is remembered of them goes with the instance",
			    s->name, num_format_grouped(loss->unsettled, slots));
		if (ms)
			err_hint(err, "detach again, not before %s are over; or detach --force",
				 num_format_duration_ms((ms + 999) / 1000 * 1000, time));
		else
			err_hint(err, "detach again when weir service shows no pins of it; or "
				      "detach --force");
	} else {
		err_refused(err,
			    "connections of service '%s' would break: attach would give %s of its "
			    "slots to others",
			    s->name, num_format_grouped(loss->other, slots));
		err_hint(err, "what is set with --volatile goes with the instance, and so does a "
			      "ring that is kept as no backend counts; or detach --force");
	}
	return -EBUSY;
}

static int check(struct lb_maps *l, const struct instance *i, const struct clock *now,
		 struct err *err)
{
	struct lb_state *b = lb_maps_state(l);
	CLEANUP_FREE struct lb_member *members = NULL;
	struct lb_state fresh = *b;
	struct overrides overrides = {0};
	int code = 0;

	members = mem_zalloc(b->n_members, sizeof(*members));
	memcpy(members, b->members, b->n_members * sizeof(*members));
	fresh.members = members;
	overrides_read(i->name, &overrides, NULL); // damaged: attach begins without it, too
	take_kept_overrides(&fresh, &overrides, now->wall_ms / 1000);
	vec_free(&overrides);
	for (size_t n = 0; !code && n < b->n_services; n++) {
		struct lb_service_loss loss;

		lb_service_loss(&fresh, &b->services[n], now->jiffies, now->hz, &loss);
		if (loss.unsettled || loss.other)
			code = refuse(&b->services[n], &loss, now, err);
	}
	return code;
}

int parting_check(const struct instance *i, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	struct commit_state state;
	struct clock now;
	uint32_t in_force = 0;
	int code = commit_read(i, &state, err);

	if (!code)
		in_force = state.in_force;
	if (!code)
		code = in_force ? lb_maps_open(i, in_force, &l, err) : -ENOENT;
	if (code == -ENOENT)
		return 0;
	if (!code)
		code = instance_clock(i, &now, err);
	// A trial has two rings that stand for each other: they are left as they are.
	if (!code && !state.deadline)
		code = lb_running_tidy(l, &now, NULL, NULL, err);
	if (!code)
		return check(l, i, &now, err);
	if (!err->hint[0])
		err_hint(err, "weir detach --force goes without a look at connections");
	return code;
}
