// SPDX-License-Identifier: GPL-2.0-only
// A running balancer: what has expired, rings after an override, next hops.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"
#include "ctl/control/sentences.h"
#include "ctl/datapath/clock.h"
#include "ctl/datapath/lb_maps.h"

// For the services in use (lb_maps_use; the others must not be due, lb_service_is_due): ends
// expired overrides, counts evicted pins, closes transitions that have expired and have no pin
// left, and completes the work of a killed command. *ret_pinned (may be NULL), by service: whether
// it has live pins. *ret_ids (may be NULL): the backends that live pins name are added. 0 or -errno
// with err set.
int lb_running_tidy(struct lb_maps *l, const struct clock *now, bool *ret_pinned,
		    struct lb_ids *ret_ids, struct err *err);

// Keeps changing slots changing for at least `ms` more, so that a plan made now is valid when it is
// written.
int lb_running_guard(struct lb_maps *l, const struct clock *now, uint32_t ms, struct err *err);

// Adapts the rings of the services that are used to the current members, and writes all that
// differs. ret_changed (may be NULL): slots that changed.
int lb_running_rewrite(struct lb_maps *l, const struct clock *now, size_t *ret_changed,
		       struct err *err);

// The same for some services, by index (NULL: all).
int lb_running_rewrite_some(struct lb_maps *l, const struct clock *now, const bool *some,
			    size_t *ret_changed, struct err *err);
// The same during a trial, for its ring and the previous ring, which index their services
// separately. The trial ends at `end`, in jiffies.
int lb_running_rewrite_trial(struct lb_maps *trial, const bool *some, struct lb_maps *before,
			     const bool *some_before, uint64_t end, const struct clock *now,
			     size_t *ret_changed, struct err *err);
// Flows that the ring on trial moves are pinned. After a return, the ring before must look for
// those pins: writes it into the state.
void lb_running_way_back(struct lb_state *before, const struct lb_state *trial,
			 const struct clock *now);

// The state of the paths to backends.
struct lb_paths {
	struct sentences
		lost; // no path to a backend that gets new flows, or its next hop does not answer
	struct sentences warnings; // other problems of a path
	size_t changed;            // next hops that differ from those in the kernel
	VEC(struct addr) moved;    // the backends of these
	VEC(struct addr) hops; // whose routes and neighbours matter: backends and their gateways
};
void lb_paths_free(struct lb_paths *ways);
#define CLEANUP_LB_PATHS CLEANUP(lb_paths_free)

// Asks the kernel for the next hops again and, with `write`, writes those that differ. Waits at
// most wait_ms for neighbours.
int lb_running_refresh(struct lb_maps *l, uint32_t wait_ms, bool write, struct lb_paths *ret,
		       struct err *err);
