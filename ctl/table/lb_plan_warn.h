// SPDX-License-Identifier: GPL-2.0-only
// Messages about a service that is planned, at its place in the policy.
#pragma once

#include "ctl/table/lb_ring.h"

// Does the planned service differ from the running one in a way that moves every connection?
bool lb_plan_moves_all(const struct lb_service *planned, const struct lb_service *running);
// An error for each of these differences.
void lb_plan_refuse(struct diag *d, const struct resolved_service *from,
		    const struct lb_service *planned, const struct lb_service *running);

// Warns if a share of the ring is off by more than SERVICE_SHARE_WARN.
void lb_plan_warn_share(struct diag *d, const struct resolved_service *from,
			const struct lb_ring *ring);
// No backend counts; `before`: one did.
void lb_plan_warn_no_backend(struct diag *d, const struct resolved_service *from, bool before);
// The service keeps its number of pins.
void lb_plan_warn_pins(struct diag *d, const struct resolved_service *from, uint64_t pins,
		       bool trial);
