// SPDX-License-Identifier: GPL-2.0-only
// The messages that are hashed for a flow.
#include "flow.h"

#include <string.h>

#include "siphash.h"

uint64_t flow_hash_tuple(const uint8_t *key, const struct flow *flow)
{
	unsigned int width = flow->family == 4 ? 4 : 16;
	uint8_t message[40] = {0};

	memcpy(message, flow->source, width);
	memcpy(message + width, flow->destination, width);
	bytes_network(message + 2 * width, flow->source_port, 2);
	bytes_network(message + 2 * width + 2, flow->destination_port, 2);
	message[2 * width + 4] = flow->proto;
	return siphash13(key, message, 2 * width + 8);
}

uint64_t flow_hash_source(const uint8_t *key, const struct flow *flow)
{
	uint8_t message[16] = {0};

	memcpy(message, flow->source, flow->family == 4 ? 4 : 16);
	return siphash13(key, message, flow->family == 4 ? 8 : 16);
}

uint32_t flow_scale(uint32_t half, uint32_t count)
{
	return (uint32_t)((uint64_t)half * count >> 32);
}
