// SPDX-License-Identifier: GPL-2.0-only
// The vectors of docs/ring.md, and properties of any ring.
#include "ring_selftest.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "ring.h"
#include "verdicts.h"
#include "words.h"

#define SHOWN 12

struct vector {
	unsigned int backends;
	uint32_t size;
	uint32_t least;
	uint32_t cycle;
	uint16_t owners[SHOWN];
	uint64_t digest;
	uint64_t fingerprint;
};

/* clang-format off */
static const struct vector vectors[] = {
	{1, 4093, 1, 1, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	 0xa9a8fde1c90ddde8, 0xce8298c1bfd02499},
	{2, 4093, 1, 1, {1, 1, 2, 1, 1, 1, 2, 2, 2, 1, 2, 2},
	 0x9497a308e23510ce, 0x6f3aee4031592d8c},
	{3, 4093, 1, 3, {3, 3, 2, 3, 1, 1, 2, 2, 3, 3, 2, 3},
	 0x0648c6c1d00f6545, 0x0413847a443177aa},
	{5, 16381, 1, 4, {1, 2, 3, 5, 3, 1, 4, 5, 3, 3, 3, 2},
	 0xcd8353be7213f97e, 0xd4ea0d721cb3e056},
	{10, 16381, 1, 1, {10, 2, 10, 5, 3, 6, 8, 5, 7, 7, 8, 9},
	 0xa686ce779034b918, 0x7070856cb999bfc0},
	{100, 16381, 1, 7, {90, 41, 13, 13, 70, 6, 27, 63, 12, 97, 7, 63},
	 0x0b39671b9a3ec4c7, 0x67ec56ee96bfbda2},
	{37, 65537, 1, 5, {14, 14, 37, 32, 29, 10, 10, 18, 13, 28, 30, 22},
	 0xafccf2aa98316374, 0x21eec26384b22797},
	{1000, 65537, 1, 1000, {422, 247, 926, 776, 872, 554, 772, 631, 539, 613, 579, 582},
	 0x56341babde25ac0a, 0x267b66f0671a3079},
	{1024, 131071, 1, 2, {515, 242, 342, 631, 551, 80, 404, 247, 372, 153, 584, 376},
	 0xd4fd85b66481702e, 0xd3182d6de244878b},
	{300, 65537, 65236, 300, {184, 247, 177, 175, 62, 156, 91, 84, 13, 202, 209, 161},
	 0x43d30c9b92a058e4, 0x649927c9c903d524},
};
/* clang-format on */

static void key_count_up(uint8_t key[SIPHASH_KEY])
{
	for (unsigned int i = 0; i < SIPHASH_KEY; i++)
		key[i] = (uint8_t)i;
}

static void test_hash(struct verdicts *verdicts)
{
	uint8_t key[SIPHASH_KEY];
	uint8_t zero = 0;

	key_count_up(key);
	expect(verdicts, "hash of nothing", siphash13(key, "", 0), 0xabac0158050fc4dc);
	expect(verdicts, "hash of one byte", siphash13(key, &zero, 1), 0xc9f49bf37d57ca93);
}

static void test_seed(struct verdicts *verdicts, const char *seed, uint64_t k0, uint64_t k1)
{
	uint8_t key[SIPHASH_KEY], wanted[SIPHASH_KEY];

	bytes_lower_first(wanted, k0, 8);
	bytes_lower_first(wanted + 8, k1, 8);
	ring_key_from_seed(seed, strlen(seed), key);
	expect(verdicts, "k0 of a seed", (uint64_t)memcmp(key, wanted, 8), 0);
	expect(verdicts, "k1 of a seed", (uint64_t)memcmp(key + 8, wanted + 8, 8), 0);
}

static void test_flows(struct verdicts *verdicts)
{
	struct flow v4 = {
		.source_port = 4660, .destination_port = 443, .family = 4, .proto = FLOW_TCP};
	struct flow v6 = {
		.source_port = 4660, .destination_port = 443, .family = 6, .proto = FLOW_UDP};
	uint8_t key[SIPHASH_KEY];

	key_count_up(key);
	inet_pton(AF_INET, "192.0.2.1", v4.source);
	inet_pton(AF_INET, "198.51.100.200", v4.destination);
	inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", v6.source);
	inet_pton(AF_INET6, "2001:db8:fffe::99:80:7f01", v6.destination);
	expect(verdicts, "tuple, IPv4", flow_hash_tuple(key, &v4), 0xb8620371f77c0777);
	expect(verdicts, "tuple, IPv6", flow_hash_tuple(key, &v6), 0x92fb28e9ba3b5e8f);
	expect(verdicts, "source, IPv4", flow_hash_source(key, &v4), 0x5b404b8245e10c98);
	expect(verdicts, "source, IPv6", flow_hash_source(key, &v6), 0x67bf21975ca8baef);
}

static struct backend backend_make(unsigned int i, const struct vector *vector)
{
	struct backend backend = {
		.id = (uint16_t)(i + 1),
		.weight = vector->least + i % vector->cycle,
		.family = i % 4 == 3 ? 6 : 4,
	};

	inet_pton(AF_INET6, "2001:db8::", backend.address);
	if (backend.family == 4)
		memcpy(backend.address, (uint8_t[16]){10}, 16);
	bytes_network(backend.address + (backend.family == 4 ? 2 : 14), i + 1, 2);
	return backend;
}

static uint64_t owners_digest(const struct ring *ring, const uint16_t *owners)
{
	uint8_t *message = memory(ring->size, 2);
	uint64_t digest;

	for (uint32_t i = 0; i < ring->size; i++)
		bytes_lower_first(message + 2 * (size_t)i, owners[i], 2);
	digest = siphash13(ring->key, message, 2 * (size_t)ring->size);
	free(message);
	return digest;
}

/* Adds backends that must not count; the owners must stay. */
static void test_bystanders(struct verdicts *verdicts, const struct ring *ring, uint64_t digest)
{
	struct backend more[RING_BACKENDS_MAX];
	uint16_t *owners = memory(ring->size, sizeof(*owners));
	struct ring other = *ring;
	size_t at = ring->count / 2;

	memcpy(more, ring->backends, at * sizeof(*more));
	memcpy(more + at + 4, ring->backends + at, (ring->count - at) * sizeof(*more));
	for (unsigned int i = 0; i < 4; i++)
		more[at + i] = (struct backend){.id = (uint16_t)(2000 + i),
						.family = 4,
						.address = {192, 0, 2, (uint8_t)i},
						.weight = i != 0,
						.backup = i == 1,
						.state = i == 2   ? BACKEND_DRAIN
							 : i == 3 ? BACKEND_DOWN
								  : BACKEND_UP};
	other.backends = more;
	other.count += 4;
	expect(verdicts, "fill with bystanders", ring_fill(&other, owners), true);
	expect(verdicts, "digest with bystanders", owners_digest(&other, owners), digest);
	free(owners);
}

static void test_ring(struct verdicts *verdicts, const struct vector *vector)
{
	struct backend *backends = memory(vector->backends, sizeof(*backends));
	uint16_t *owners = memory(vector->size, sizeof(*owners));
	struct ring ring = {.size = vector->size, .backends = backends, .count = vector->backends};

	key_count_up(ring.key);
	for (unsigned int i = 0; i < vector->backends; i++)
		backends[vector->backends - 1 - i] = backend_make(i, vector);
	expect(verdicts, "size", ring_size_valid(ring.size), true);
	expect(verdicts, "fill", ring_fill(&ring, owners), true);
	for (unsigned int i = 0; i < SHOWN; i++)
		expect(verdicts, "owner", owners[i], vector->owners[i]);
	expect(verdicts, "digest", owners_digest(&ring, owners), vector->digest);
	expect(verdicts, "fingerprint", ring_fingerprint(&ring), vector->fingerprint);
	if (ring.count + 4 <= RING_BACKENDS_MAX)
		test_bystanders(verdicts, &ring, vector->digest);
	free(owners);
	free(backends);
}

/* Only backups, then no backend. */
static void test_who_counts(struct verdicts *verdicts)
{
	struct backend backends[2] = {
		{.id = 1, .family = 4, .weight = 3, .state = BACKEND_DRAIN},
		{.id = 2, .family = 0, .weight = 1, .backup = true},
	};
	struct ring ring = {.size = RING_SIZE_MIN, .backends = backends, .count = 2};
	uint16_t *owners = memory(ring.size, sizeof(*owners));

	expect(verdicts, "fill with a backup", ring_fill(&ring, owners), true);
	expect(verdicts, "the backup's slot", owners[ring.size - 1], 2);
	expect(verdicts, "error of one alone", ring_error_ppm(&ring, owners), 0);
	backends[1].state = BACKEND_DOWN;
	expect(verdicts, "fill without a backend", ring_fill(&ring, owners), false);
	expect(verdicts, "owner as before", owners[0], 2);
	free(owners);
}

int ring_selftest(void)
{
	struct verdicts verdicts = {0};

	test_hash(&verdicts);
	test_seed(&verdicts, "correct horse battery staple", 0x3531cbaeefe55c95,
		  0xc441c95d6521fd4a);
	test_seed(&verdicts, "", 0x981e2aaf8ee704bb, 0xa7f5c42dfaf7a91b);
	test_flows(&verdicts);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		test_ring(&verdicts, &vectors[i]);
	test_who_counts(&verdicts);
	return verdicts_end(&verdicts);
}
