// SPDX-License-Identifier: GPL-2.0-only
// Input for loading the balancer of a generation.
#pragma once

#include <stdint.h>

#include "common/nat.h"
#include "common/service.h"
#include "ctl/base/err.h"
#include "ctl/table/lb_state.h"
#include "ctl/table/nat_plan.h"

struct generation;
struct lb_maps;
struct markers;
struct policy_bpf;

struct lb_load {
	// NULL: the policy, which is on trial, has no services, and only sends the answers of
	// connections that the previous one began. `uses` and `wish` are set then.
	const struct lb_state *lb;
	const struct backend *backends; // SERVICE_BACKENDS elements, by number
	// The running balancer whose backends are shared or copied: their devices stay usable.
	// NULL: none.
	const struct lb_maps *running;
	// Numbers that the running balancer does not have: these backends are written at once,
	// their counters begin at 0, and pins that name them are freed.
	struct lb_ids fresh;
	// By number of an end of nat or fullnat, NAT_ENDS elements; NULL: no service needs the
	// table of connections, and no program for it is loaded.
	const struct nat_use *uses;
	const struct nat_wish *wish; // what it wants of that table; NULL as `uses`
	uint32_t hz;
};

// Before the load: sets the sizes of the maps, takes over maps of the generation folder `previous`
// (NULL: none), and sets the markers of services. b NULL: a policy without services.
int lb_load_prepare(struct policy_bpf *skel, const struct lb_load *b, const char *previous,
		    struct markers *markers, struct err *err);
// After the load: services, rings, pins, next hops of new backends, the second program. Nothing
// changes for packets of the previous generation. 0 or -errno with err set.
int lb_load_fill(struct generation *g, const struct lb_load *b, const char *previous,
		 struct err *err);
