// SPDX-License-Identifier: GPL-2.0-only
// Sorts backends by the hash of address and port (docs/ring.md, "Backends").
#include "ctl/table/ring_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define MESSAGE 24

static const char word[5] = {'r', 'i', 'n', 'g', '0' + RING_VERSION};

static void message(const struct ring_backend *b, uint8_t to[MESSAGE])
{
	memset(to, 0, MESSAGE);
	memcpy(to, word, sizeof(word));
	to[5] = b->addr.family;
	to[6] = (uint8_t)(b->port >> 8);
	to[7] = (uint8_t)b->port;
	memcpy(to + 8, b->addr.bytes, sizeof(b->addr.bytes));
}

// The message decides between equal hashes, so that the order never depends on the one given.
static int compare(const void *a, const void *b)
{
	const struct ring_entry *x = a, *y = b;
	uint8_t left[MESSAGE], right[MESSAGE];

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	message(x->backend, left);
	message(y->backend, right);
	return memcmp(left, right, MESSAGE);
}

bool ring_size_ok(uint32_t size)
{
	return size >= POLICY_RING_MIN && size <= POLICY_RING_MAX && num_is_prime(size);
}

static bool backend_ok(const struct ring_backend *b)
{
	return b->id != BACKEND_NONE && b->id < SERVICE_BACKENDS && b->weight <= POLICY_WEIGHT_MAX;
}

int ring_order(const struct hash_key *key, const struct ring_backend *b, size_t n, uint32_t size,
	       struct ring_entry **ret)
{
	CLEANUP_FREE struct ring_entry *order = NULL;

	if (!ring_size_ok(size) || n > POLICY_BACKENDS)
		return -EINVAL;
	order = mem_zalloc(n, sizeof(*order));
	for (size_t i = 0; i < n; i++) {
		uint8_t text[MESSAGE];

		if (!backend_ok(&b[i]))
			return -EINVAL;
		message(&b[i], text);
		order[i].hash = hash_bytes(key, text, MESSAGE, HASH_ROUNDS, HASH_ROUNDS_FINAL);
		order[i].backend = &b[i];
	}
	qsort(order, n, sizeof(*order), compare);
	for (size_t i = 1; i < n; i++)
		if (!compare(&order[i - 1], &order[i]))
			return -EINVAL;
	*ret = TAKE_PTR(order);
	return 0;
}
