// SPDX-License-Identifier: GPL-2.0-only
// Plans the services of a policy around those that run: what the parts of lb_plan() share.
#pragma once

#include "ctl/table/lb_ring.h"

struct plan {
	const struct lb_plan_options *o;
	struct diag *diag;
	struct hash_key key;
	struct lb_state running; // what the hand set is ended as the wall clock says; empty: none
	struct lb_state *b;      // grows; has room for all
	struct lb_ids used;      // numbers that are not given
	uint32_t last;           // the number given last
	bool full, failed;
};

// A service while it is planned.
struct turn {
	const struct resolved_service *from;
	struct lb_service *s;
	const struct lb_service *was; // of this name
	bool goes_on;                 // as the one that was, not anew
	struct lb_ids named;          // numbers of the policy's members
};

// Before the first number is given.
void lb_plan_numbers(struct plan *p);
// One that nothing uses; BACKEND_NONE with an error queued: there is none.
uint16_t lb_plan_number(struct plan *p, const struct resolved_service *from);

// Those of the policy, with what is known of them from before.
void lb_plan_members(struct plan *p, struct turn *t);
// Behind them, when the slots are planned: those that the policy has dropped and something still names. On
// trial all of them, the ring before goes on with them.
void lb_plan_gone(struct plan *p, struct turn *t);

// ---- what an operator is told, at the service's place -------------------------------------------

// Does the planned service differ from the running one in what says where every connection goes?
bool lb_plan_moves_all(const struct lb_service *planned, const struct lb_service *running);
// An error for each of the differences.
void lb_plan_refuse(struct diag *d, const struct resolved_service *from,
		    const struct lb_service *planned, const struct lb_service *running);

// Warns if a share of the ring is worse than SERVICE_SHARE_WARN.
void lb_plan_warn_share(struct diag *d, const struct resolved_service *from,
			const struct lb_ring *ring);
// Nobody counts; `before`: somebody did.
void lb_plan_warn_no_backend(struct diag *d, const struct resolved_service *from, bool before);
// The service keeps its number of pins.
void lb_plan_warn_pins(struct diag *d, const struct resolved_service *from, uint64_t pins,
		       bool trial);
