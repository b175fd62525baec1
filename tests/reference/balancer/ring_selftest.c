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
	 0xa9a8fde1c90ddde8, 0x51f54895af6fc2fd},
	{2, 4093, 1, 1, {2, 2, 1, 2, 1, 1, 1, 2, 1, 2, 1, 2},
	 0xefdcb6d8a591b7a3, 0x35b4f2dc338018ce},
	{3, 4093, 1, 3, {2, 2, 3, 2, 3, 3, 3, 2, 1, 2, 1, 2},
	 0x9d4793ab9c0654f6, 0x2a9fccb26ffdefce},
	{5, 16381, 1, 4, {3, 4, 4, 3, 1, 5, 3, 3, 4, 4, 3, 4},
	 0xdbc14e32c8218339, 0xbaad59dd2ed291f1},
	{10, 16381, 1, 1, {8, 4, 7, 6, 1, 8, 3, 9, 4, 7, 3, 10},
	 0x0733b807b39c53cd, 0x9160180869b7c2db},
	{100, 16381, 1, 7, {70, 75, 24, 34, 89, 56, 45, 9, 18, 41, 65, 39},
	 0xf0bccb4f807a05ab, 0x646e25591d1ca743},
	{37, 65537, 1, 5, {15, 5, 12, 23, 3, 4, 35, 22, 10, 30, 24, 25},
	 0x4b9b9b68d5bf8ae2, 0xc56023c77bfce59e},
	{1000, 65537, 1, 1000, {688, 786, 784, 498, 913, 699, 875, 652, 680, 524, 755, 872},
	 0x62ea5a29b9ed8b9b, 0xd613d9d3f600943d},
	{1024, 131071, 1, 2, {581, 784, 985, 856, 438, 652, 402, 14, 920, 862, 272, 692},
	 0xdc25615ba71590bd, 0x03292ac64fd6d7a2},
	{300, 65537, 65236, 300, {49, 289, 140, 148, 83, 147, 96, 122, 275, 81, 42, 25},
	 0xe0a043a92d5fcc42, 0xb11a28404183aa89},
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
	expect(verdicts, "tuple, IPv4", flow_hash_tuple(key, &v4), 0xa3cc988469faf4b0);
	expect(verdicts, "tuple, IPv6", flow_hash_tuple(key, &v6), 0xadb54cc12194b089);
	expect(verdicts, "source, IPv4", flow_hash_source(key, &v4), 0x3e00709ecd74e613);
	expect(verdicts, "source, IPv6", flow_hash_source(key, &v6), 0xf7b31d83f6684b54);
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
	test_seed(&verdicts, "correct horse battery staple", 0x903c7fc6dbb9d955,
		  0xff3cd3462b9bed89);
	test_seed(&verdicts, "", 0x4891e2e2095c49e7, 0x0eaeecb979144cef);
	test_flows(&verdicts);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		test_ring(&verdicts, &vectors[i]);
	test_who_counts(&verdicts);
	return verdicts_end(&verdicts);
}
