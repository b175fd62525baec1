// SPDX-License-Identifier: GPL-2.0-only
// The ring that the members of a service make, as they are now.
#pragma once

#include "ctl/table/balancer.h"

struct balancer_ring {
	struct ring_backend *backends; // those that count
	size_t n;
	uint16_t *owners; // of the service's slots
};

void balancer_ring_cleanup(struct balancer_ring *ring);
#define CLEANUP_BALANCER_RING CLEANUP(balancer_ring_cleanup)

// False when nobody counts; *ret is to be cleaned up in any case.
bool balancer_ring_fill(const struct balancer *b, const struct balancer_service *s,
			struct balancer_ring *ret);
