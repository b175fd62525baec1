// SPDX-License-Identifier: GPL-2.0-only
// Keys of rings, the election of backends, and figures of a filled ring.
#include "ctl/table/ring.h"

#include <string.h>

#include "ctl/base/mem.h"

static const char seed_word[5] = {'s', 'e', 'e', 'd', '0' + RING_VERSION};
static const char flow_word[5] = {'f', 'l', 'o', 'w', '0' + RING_VERSION};
static const char mark_word[5] = {'m', 'a', 'r', 'k', '0' + RING_VERSION};

static uint64_t hash13(const struct hash_key *key, const void *data, size_t len)
{
	return hash_bytes(key, data, len, HASH_ROUNDS, HASH_ROUNDS_FINAL);
}

struct hash_key ring_key(const char *seed, size_t len)
{
	static const struct hash_key zero;
	CLEANUP_FREE char *message = mem_zalloc(len + 6, 1);
	struct hash_key key;

	memcpy(message, seed_word, sizeof(seed_word));
	memcpy(message + 6, seed, len);
	for (int i = 0; i < 2; i++) {
		message[5] = (char)i;
		key.word[i] = hash13(&zero, message, len + 6);
	}
	return key;
}

struct flow_key ring_flow_key(const struct hash_key *key)
{
	char message[6];
	struct flow_key flow;

	memcpy(message, flow_word, sizeof(flow_word));
	for (int i = 0; i < FLOW_WORDS; i++) {
		message[5] = (char)i;
		flow.word[i] = hash13(key, message, sizeof(message));
	}
	for (int i = 0; i < 2; i++) {
		message[5] = (char)(FLOW_WORDS + i);
		flow.mix[i] = hash13(key, message, sizeof(message)) | 1;
	}
	return flow;
}

// ---- who counts ---------------------------------------------------------------------------------

static bool counts(const struct ring_backend *b, bool backup)
{
	return b->state == BACKEND_UP && b->weight && b->backup == backup;
}

static size_t count(const struct ring_backend *b, size_t n, bool backup)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += counts(&b[i], backup);
	return found;
}

size_t ring_elect(const struct ring_backend *b, size_t n, struct ring_backend *ret)
{
	bool backup = !count(b, n, false);
	size_t elected = count(b, n, backup);

	for (size_t i = 0; i < n; i++) {
		ret[i] = b[i];
		if (!counts(&b[i], backup))
			ret[i].weight = 0;
	}
	return elected;
}

// ---- shares -------------------------------------------------------------------------------------

uint64_t ring_share_error(const struct ring_backend *b, size_t n, uint32_t size,
			  const uint16_t *owners, size_t *ret_worst)
{
	CLEANUP_FREE uint32_t *slots = mem_zalloc(SERVICE_BACKENDS, sizeof(*slots));
	uint64_t sum = 0, worst = 0;
	size_t who = 0;

	for (uint32_t i = 0; i < size; i++)
		slots[owners[i] & SLOT_ID]++;
	for (size_t i = 0; i < n; i++)
		sum += b[i].weight;
	for (size_t i = 0; i < n; i++) {
		uint64_t is = slots[b[i].id & SLOT_ID] * sum;
		uint64_t wanted = (uint64_t)size * b[i].weight;
		uint64_t off = is > wanted ? is - wanted : wanted - is; // below 2^43

		if (!b[i].weight)
			continue;
		off = (off * 1000000 + wanted - 1) / wanted;
		if (off > worst) {
			worst = off;
			who = i;
		}
	}
	if (ret_worst)
		*ret_worst = who;
	return worst;
}

// ---- fingerprint --------------------------------------------------------------------------------

static void put_le(uint8_t *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

int ring_fingerprint(const struct hash_key *key, enum service_hash hash, uint32_t size,
		     const struct ring_backend *b, size_t n, uint64_t *ret)
{
	CLEANUP_FREE struct ring_entry *order = NULL;
	CLEANUP_FREE uint8_t *message = NULL;
	int code = ring_order(key, b, n, size, &order);

	if (code < 0)
		return code;
	message = mem_zalloc(n + 1, 16);
	memcpy(message, mark_word, sizeof(mark_word));
	message[5] = (uint8_t)hash;
	put_le(message + 8, size, 4);
	put_le(message + 12, n, 4);
	for (size_t i = 0; i < n; i++) {
		uint8_t *to = message + 16 * (i + 1);

		put_le(to, order[i].hash, 8);
		put_le(to + 8, order[i].backend->weight, 4);
		to[12] = order[i].backend->state;
		to[13] = order[i].backend->backup;
	}
	*ret = hash13(key, message, 16 * (n + 1));
	return 0;
}
