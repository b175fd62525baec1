// SPDX-License-Identifier: GPL-2.0-only
// Plans the services of a policy around those that run: what the parts of lb_plan() share.
#pragma once

#include "ctl/table/lb_ring.h"

struct plan {
	const struct lb_plan_options *o;
	struct diag *diag;
	struct hash_key key;
	struct lb_state running; // without expired overrides; empty: none
	struct lb_state *b;      // grows; has room for all
	struct lb_ids used;      // numbers that are not free
	uint32_t last;           // the number that was taken last
	bool full, failed;
};

// A service while it is planned.
struct turn {
	const struct resolved_service *from;
	struct lb_service *s;
	const struct lb_service *was; // of this name
	bool continues;               // the running one
	struct lb_ids named;          // numbers of the policy's members
};

// Called before the first number is taken.
void lb_plan_numbers(struct plan *p);
// Takes a free number; BACKEND_NONE with an error queued if no number is free.
uint16_t lb_plan_number(struct plan *p, const struct resolved_service *from);

// Adds the members of the policy, with their running state.
void lb_plan_members(struct plan *p, struct turn *t);
// Called after the slots are planned: adds the members that the policy no longer has, but slots or
// pins still name. During a trial adds all, because the previous ring still uses them.
void lb_plan_gone(struct plan *p, struct turn *t);

// ---- messages, at the service's place -----------------------------------------------------------

// Does the planned service differ from the running one in a way that moves every connection?
bool lb_plan_moves_all(const struct lb_service *planned, const struct lb_service *running);
// An error for each of the differences.
void lb_plan_refuse(struct diag *d, const struct resolved_service *from,
		    const struct lb_service *planned, const struct lb_service *running);

// Warns if a share of the ring is worse than SERVICE_SHARE_WARN.
void lb_plan_warn_share(struct diag *d, const struct resolved_service *from,
			const struct lb_ring *ring);
// No backend counts; `before`: one did.
void lb_plan_warn_no_backend(struct diag *d, const struct resolved_service *from, bool before);
// The service keeps its number of pins.
void lb_plan_warn_pins(struct diag *d, const struct resolved_service *from, uint64_t pins,
		       bool trial);
