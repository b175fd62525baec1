// SPDX-License-Identifier: GPL-2.0-only
// The table of connections on the way to another policy: ends and blocks of its services in nat and
// fullnat are planned around those that exist, and written (docs/nat.md).
//
// The order: nat_apply_look, lb_plan, nat_apply_plan, nat_apply_prepare, load, switch, nat_settle
// (control/nat_settle). nat_apply_prepare has no effect for the running policy; nat_settle removes
// the new ends and blocks if the policy is not switched to.
#pragma once

#include "ctl/control/nat_settle.h"
#include "ctl/datapath/clock.h"
#include "ctl/table/lb_state.h"
#include "ctl/table/nat_plan.h"
#include "ctl/table/nat_walk.h"

struct nat_apply {
	struct nat_plan *plan;     // NULL: no service needs the table
	struct nat_census *census; // before the change; NULL: there is no instance
	uint8_t kept[NAT_ENDS];    // by the number of an end: its connections may live
};
void nat_apply_free(struct nat_apply *a);

// Completes the work of an interrupted command, walks over the table, and adds the backends that
// connections name to *busy. 0 or -errno with err set.
int nat_apply_look(struct nat_apply *a, const struct instance *i, struct lb_ids *busy,
		   struct err *err);
struct nat_apply_options {
	bool force, trial; // as of struct nat_plan_options
};
// Plans the services of r, which lb has too. i NULL: around an empty table. 0, or -errno with err
// set and errors in d.
int nat_apply_plan(struct nat_apply *a, const struct resolved *r, const struct lb_state *lb,
		   const struct instance *i, struct nat_apply_options o, struct diag *d,
		   struct err *err);
// Writes new ends, blocks, sources, and the backends whose answers are looked for. 0 or -errno with
// err set.
int nat_apply_prepare(const struct nat_apply *a, const struct instance *i, const struct clock *now,
		      struct err *err);
