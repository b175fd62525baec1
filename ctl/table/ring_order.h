// SPDX-License-Identifier: GPL-2.0-only
// The order of the backends of a ring: by a keyed hash of address and port.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/base/addr.h"

// The version of hashes and fill: the digit in the messages "ring2", "seed2", "flow2" and "mark2".
#define RING_VERSION 2

struct ring_backend {
	struct addr addr;
	uint16_t port;   // host order; 0: the port of the packet
	uint16_t id;     // the number in slots: 1 … SERVICE_BACKENDS - 1
	uint32_t weight; // at most POLICY_WEIGHT_MAX; 0: drained
	uint8_t state;   // enum backend_state
	bool backup;
};

struct ring_entry {
	uint64_t hash; // determines the position in the order and the permutation
	const struct ring_backend *backend;
};

// Is it a size of a ring: a prime of POLICY_RING_MIN … POLICY_RING_MAX?
bool ring_size_ok(uint32_t size);

// The n backends in order; to be freed. -EINVAL: the size is no ring's, a backend is out of range,
// too many, or one is there twice.
int ring_order(const struct hash_key *key, const struct ring_backend *b, size_t n, uint32_t size,
	       struct ring_entry **ret);
