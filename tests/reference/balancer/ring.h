// SPDX-License-Identifier: GPL-2.0-only
// The owner of each slot: keys, order, fill and fingerprint (docs/ring.md, "Key" to "Fingerprint").
#ifndef REF_RING_H
#define REF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "siphash.h"

#define RING_BACKENDS_MAX 1024
#define RING_SIZE_MIN     4093
#define RING_SIZE_MAX     131071

enum backend_state { BACKEND_UP, BACKEND_DRAIN, BACKEND_DOWN, BACKEND_FAILING };

struct backend {
	uint16_t id;         /* from 1; 0: no backend */
	uint16_t port;       /* 0 where the mode does not change it */
	uint32_t weight;     /* 0 to 65535 */
	uint8_t address[16]; /* network order; IPv4 in the first four */
	uint8_t family;      /* 4, 6, or 0 for "here" */
	bool backup;
	enum backend_state state;
};

struct ring {
	uint8_t key[SIPHASH_KEY];
	bool by_source;
	uint32_t size;
	const struct backend *backends; /* in any order */
	size_t count;
};

void ring_key_from_seed(const void *seed, size_t len, uint8_t ret_key[SIPHASH_KEY]);
bool ring_size_valid(uint64_t size);
uint64_t ring_backend_hash(const uint8_t *key, const struct backend *backend);

/* Does this backend of the ring get new flows? ("Who counts") */
bool ring_counts(const struct ring *ring, const struct backend *backend);

/* The id of each slot's owner; false, and nothing written, if no backend counts. */
bool ring_fill(const struct ring *ring, uint16_t *ret_owners);

uint64_t ring_fingerprint(const struct ring *ring);

/* The worst error of a share in parts per million, rounded down; 0 if no backend counts. */
uint64_t ring_error_ppm(const struct ring *ring, const uint16_t *owners);

#endif
