// SPDX-License-Identifier: GPL-2.0-only
// The messages of flows, and their hash.
#include "flow.h"

#include <string.h>

#include "siphash.h"

#define WORDS      10 /* of the longest message */
#define FINALIZERS 2

static uint64_t flow_key(const uint8_t *key, unsigned int i)
{
	uint8_t message[6] = {'f', 'l', 'o', 'w', '2', (uint8_t)i};

	return siphash13(key, message, sizeof(message));
}

static uint64_t word_plus_key(const uint8_t *key, const uint8_t *message, unsigned int i)
{
	uint64_t word = 0;

	for (unsigned int byte = 0; byte < 4; byte++)
		word |= (uint64_t)message[4 * i + byte] << (8 * byte);
	return word + flow_key(key, i);
}

uint64_t flow_hash(const uint8_t *key, const uint8_t *message, unsigned int len)
{
	uint64_t x = 0;

	for (unsigned int i = 0; i < len / 4; i += 2)
		x += word_plus_key(key, message, i) * word_plus_key(key, message, i + 1);
	for (unsigned int i = 0; i < FINALIZERS; i++) {
		x ^= x >> 32;
		x *= flow_key(key, WORDS + i) | 1;
	}
	return x ^ x >> 32;
}

uint64_t flow_hash_tuple(const uint8_t *key, const struct flow *flow)
{
	unsigned int width = flow->family == 4 ? 4 : 16;
	uint8_t message[4 * WORDS] = {0};

	memcpy(message, flow->source, width);
	memcpy(message + width, flow->destination, width);
	bytes_network(message + 2 * width, flow->source_port, 2);
	bytes_network(message + 2 * width + 2, flow->destination_port, 2);
	message[2 * width + 4] = flow->proto;
	return flow_hash(key, message, 2 * width + 8);
}

uint64_t flow_hash_source(const uint8_t *key, const struct flow *flow)
{
	uint8_t message[16] = {0};

	memcpy(message, flow->source, flow->family == 4 ? 4 : 16);
	return flow_hash(key, message, flow->family == 4 ? 8 : 16);
}

uint32_t flow_scale(uint32_t half, uint32_t count)
{
	return (uint32_t)((uint64_t)half * count >> 32);
}
