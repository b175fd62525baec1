// SPDX-License-Identifier: GPL-2.0-only
// The ring that the present members of a service give.
#pragma once

#include "ctl/table/lb_state.h"

struct lb_ring {
	struct ring_backend *backends; // those that count
	size_t n;
	uint16_t *owners; // of the service's slots
};

void lb_ring_cleanup(struct lb_ring *ring);
#define CLEANUP_LB_RING CLEANUP(lb_ring_cleanup)

// False: no backend counts. *ret must be cleaned up in any case.
bool lb_ring_fill(const struct lb_state *b, const struct lb_service *s, struct lb_ring *ret);
