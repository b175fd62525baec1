// SPDX-License-Identifier: GPL-2.0-only
// Rings: computes which backend owns which slot, only from the seed, the backends and their
// weights.
//
// Maglev (Eisenbud et al., NSDI 2016, section 3.4) with weights. Two nodes with the same input fill
// the same ring, whatever the order, names and numbers of their backends. A ring is an ABI:
// docs/ring.md specifies it to the bit, and tests hold golden vectors. common/flowhash.h computes
// the hash of a flow.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/table/ring_order.h"

// The key of `seed STRING`. Without a seed the key is 16 random bytes.
struct hash_key ring_key(const char *seed, size_t len);
// Keys of the hash of flows, derived from the key of the service.
struct flow_key ring_flow_key(const struct hash_key *key);

// Elects the backends for new flows: copies n backends to `ret`, with weight 0 for those that get
// none. A backend counts if it is up and has weight; backups count if no other backend does.
// Returns how many have weight: with 0 the last ring stays in use, and ret must not be passed to
// ring_fill().
size_t ring_elect(const struct ring_backend *b, size_t n, struct ring_backend *ret);

// Fills ret[0 … size - 1] with ids. State and backup are ignored. -EINVAL: the size is invalid, an
// id or weight is out of range, more than POLICY_BACKENDS, or two with one address and port;
// -ENOENT: none has weight. A backend whose share is below a slot may get none (ring_share_error).
int ring_fill(const struct hash_key *key, const struct ring_backend *b, size_t n, uint32_t size,
	      uint16_t *ret);

// The worst error of a share, |slots / size - weight / sum| / (weight / sum), in parts of a million
// rounded up; about 1 / (size × share). *ret_worst (may be NULL): whose it is. 0 without any
// weight.
uint64_t ring_share_error(const struct ring_backend *b, size_t n, uint32_t size,
			  const uint16_t *owners, size_t *ret_worst);

// 64 bits that are equal on two nodes if all of this is: version, seed, hash, size, the backends'
// addresses, ports, weights, states, and which are backups. -EINVAL as ring_fill, but for weights.
int ring_fingerprint(const struct hash_key *key, enum service_hash hash, uint32_t size,
		     const struct ring_backend *b, size_t n, uint64_t *ret);
