// SPDX-License-Identifier: GPL-2.0-only
// When a running balancer needs lb_running_tidy next, found by reading only.
#pragma once

#include "ctl/control/lb_running.h"

#define LB_DUE_NEVER UINT64_MAX

struct lb_due {
	// Milliseconds until a slot stops changing, an override ends, or the hold of a service
	// changes; 0: it is time.
	uint64_t tidy_ms;
	// Pins are evicted, or may be: the hold must be checked again after this time.
	uint64_t look_ms;
	// There are slots that are pins only: they become stable when no pin needs them, which a
	// tidy finds out. It is worth that after this time. LB_DUE_NEVER: no such slot.
	uint64_t walk_ms;
	struct sentences ended; // "the drain of 10.0.0.11 in web": overrides that have expired
};
void lb_due_free(struct lb_due *d);
#define CLEANUP_LB_DUE CLEANUP(lb_due_free)

// 0 or -errno with err set.
int lb_due(struct lb_maps *l, const struct clock *now, struct lb_due *ret, struct err *err);
