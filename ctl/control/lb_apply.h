// SPDX-License-Identifier: GPL-2.0-only
// The services of a policy on their way into the kernel: rings, next hops, pins.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/nat_apply.h"
#include "ctl/control/sentences.h"
#include "ctl/datapath/clock.h"
#include "ctl/datapath/lb_load.h"
#include "ctl/datapath/lb_maps.h"
#include "ctl/net/nexthop.h"
#include "ctl/policy/resolved.h"

struct lb_apply_options {
	bool force;        // start again if every connection would move
	uint64_t trial_ms; // 0: for good
	// the load may take five minutes, not half a one: slots change for so much longer
	bool patient;
	bool agent; // one runs, as lb_apply_plan has found
};

struct lb_apply {
	struct nexthop_answer *nexthops; // next hops of all services' backends, in their order
	size_t n_nexthops;
	struct lb_state *lb;      // planned
	struct backend *backends; // by number
	struct hash_key key;      // of the instance
	struct nat_apply nat;     // its services in nat and fullnat
	size_t freed;             // connections of VIPs that the policy no longer has
	struct lb_load load;
	struct lb_maps *running; // balancer of the active policy; NULL: it has none
	struct lb_apply_options options;
	struct clock clock; // of the plan
	// About next hops and sources of fullnat, with the command that mends them.
	struct sentences warnings;
};

void lb_apply_free(struct lb_apply *s);

// Asks the kernel for the next hops of all backends; waits at most wait_ms for neighbours. To be
// called without the lock. 0 also if some have none, which is a warning. -errno with err set if the
// kernel cannot be asked.
int lb_apply_find_nexthops(struct lb_apply *s, const struct resolved *r, uint32_t wait_ms,
			   struct err *err);

// Plans around the running balancer of generation `running` (0, or i NULL: no such generation)
// after tidying that up. s->load is what generation_load wants. 0; -EINVAL with errors in d; -errno
// with err set.
int lb_apply_plan(struct lb_apply *s, const struct resolved *r, const struct instance *i,
		  uint32_t running, struct diag *d, struct err *err);

// Plans that a policy on trial without services sends the answers of connections that the previous
// one has begun. *ret: there may be such connections; s->load is set. 0 or -errno with err set.
int lb_apply_plan_answers(struct lb_apply *s, const struct resolved *r, const struct instance *i,
			  bool *ret, struct diag *d, struct err *err);

// The last thing before the switch: on trial the ring before is made ready for the way back; the
// seed is kept unless `fleeting`. 0 or -errno with err set; -ETIME: the load has taken too long for
// the plan.
int lb_apply_before(struct lb_apply *s, const struct instance *i, bool fleeting, struct err *err);
// The first thing after it: time begins for what changes, and next hops and states that backends
// have now are written. 0 or -errno with err set.
int lb_apply_after(struct lb_apply *s, const struct instance *i, uint32_t generation,
		   struct err *err);

// After the return from a trial to `generation`: that policy decides which backends get new flows.
// 0, also when it has no services, or -errno with err set.
int lb_apply_back(const struct instance *i, uint32_t generation, struct err *err);
