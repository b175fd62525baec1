// SPDX-License-Identifier: GPL-2.0-only
// The hashes of a flow and the places they give (docs/ring.md, "Flows" and "Pins").
#ifndef REF_FLOW_H
#define REF_FLOW_H

#include <stdint.h>

#define FLOW_TCP  6
#define FLOW_UDP  17
#define FLOW_SCTP 132

/* Compared byte by byte: clear it completely first. */
struct flow {
	uint8_t source[16]; /* network order; IPv4 in the first four */
	uint8_t destination[16];
	uint16_t source_port;
	uint16_t destination_port;
	uint8_t family; /* 4 or 6 */
	uint8_t proto;
	uint16_t zero;
};

/* The message has an even number of words of four bytes. */
uint64_t flow_hash(const uint8_t *key, const uint8_t *message, unsigned int len);
uint64_t flow_hash_tuple(const uint8_t *key, const struct flow *flow);
uint64_t flow_hash_source(const uint8_t *key, const struct flow *flow);

/* floor(half × count / 2^32): how 32 bits of a hash choose one of count places. */
uint32_t flow_scale(uint32_t half, uint32_t count);

#endif
