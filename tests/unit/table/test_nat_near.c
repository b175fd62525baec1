// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/nat_near.c: after many changes of backends, the filter has the bits of
// sources, of the present backends and of living connections, and no others.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/nat_near.h"
#include "ctl/table/nat_walk.h"

#define NOW      5000 // ticks
#define TALKS    300  // ticks that a connection lives
#define CHANGES  200
#define BACKENDS (2 * CHANGES + 2) // by number; 0: none
#define RENEWALS 20000

enum { NAT_BLOCK, FULLNAT_BLOCK };
enum { FIRST_END = 3, SECOND_END };

static struct nat_tables tables;
static struct backend backends[BACKENDS];
static struct nat_unused unused;
static struct nat_census census;
static const uint32_t source4[4] = {0x0100000a};
static const uint32_t source6[4] = {0xfd, 0, 0, 1};

static uint64_t *filter(void)
{
	return (uint64_t *)tables.nat->near;
}

static bool has(const uint64_t *near, int family, const uint32_t *address, uint32_t port_proto)
{
	uint64_t mix = nat_mix(family, address, port_proto);

	return near[nat_near_word(mix)] >> nat_near_bit(mix) & 1;
}

// Odd numbers are of IPv4; each third backend has a port of its own.
static void make_backends(void)
{
	for (uint32_t id = 1; id < BACKENDS; id++)
		backends[id] = (struct backend){
			.family = id % 2 ? 4 : 6,
			.addr = {0x0a000000 + id, id % 2 ? 0 : id},
			.port = id % 3 ? 0 : 8080,
		};
}

static int begin(void **state)
{
	struct nat_table *nat = mem_zalloc(1, sizeof(*nat));

	nat->lives = nat_lives(30, TALKS, 60);
	nat->end[FIRST_END] =
		(struct nat_end){.port_proto = nat_port_proto(htons(80), 6), .family = 4};
	nat->end[SECOND_END] =
		(struct nat_end){.port_proto = nat_port_proto(htons(53), 17), .family = 6};
	memcpy(nat->block[0][FULLNAT_BLOCK].source, source4, sizeof(source4));
	memcpy(nat->block[1][FULLNAT_BLOCK].source, source6, sizeof(source6));
	tables = (struct nat_tables){.nat = nat, .backends = {{backends, BACKENDS}}};
	for (uint32_t b = NAT_BLOCK; b <= FULLNAT_BLOCK; b++) {
		tables.places4[b] =
			mem_zalloc(NAT_PLACES / NAT_BUCKET4, sizeof(struct nat_bucket4));
		tables.places6[b] =
			mem_zalloc(NAT_PLACES / NAT_BUCKET6, sizeof(struct nat_bucket6));
	}
	make_backends();
	memset(&unused, 0, sizeof(unused));
	return 0;
}

static int end(void **state)
{
	mem_cleanup_free(&tables.nat);
	for (uint32_t b = NAT_BLOCK; b <= FULLNAT_BLOCK; b++) {
		mem_cleanup_free(&tables.places4[b]);
		mem_cleanup_free(&tables.places6[b]);
	}
	return 0;
}

static uint32_t end_of(uint32_t id)
{
	return id % 2 ? FIRST_END : SECOND_END;
}

// A connection in the n-th place of a block.
static uint64_t *connect_to(uint32_t id, uint32_t block, uint32_t n)
{
	uint64_t last = (uint64_t)end_of(id) << NAT_END_SHIFT | n;
	uint64_t word = nat_pack(NAT_TALKS, NOW, id, 0);
	struct nat_entry4 *e4;
	struct nat_entry6 *e6;

	n += NAT_RESERVED;
	if (id % 2) {
		e4 = &tables.places4[block][n / NAT_BUCKET4].at[n % NAT_BUCKET4];
		*e4 = (struct nat_entry4){.last = last, .word = word};
		return (uint64_t *)&e4->word;
	}
	e6 = &tables.places6[block][n / NAT_BUCKET6].at[n % NAT_BUCKET6];
	*e6 = (struct nat_entry6){.last = last, .word = word};
	return (uint64_t *)&e6->word;
}

// From where the backend answers.
static uint32_t answers_from(uint32_t id)
{
	uint32_t port_proto = tables.nat->end[end_of(id)].port_proto;

	return id % 3 ? port_proto : nat_port_proto(htons(8080), (uint8_t)(port_proto >> 16));
}

static void put_backend(uint64_t *near, uint32_t id)
{
	nat_near_put(near, backends[id].family, backends[id].addr, answers_from(id));
}

static void put_sources(uint64_t *near)
{
	nat_near_put(near, 4, source4, 0);
	nat_near_put(near, 6, source6, 0);
}

// As control does at a walk.
static void renew(const uint64_t *policy)
{
	const uint64_t *const needed[] = {census.near, policy};

	nat_walk(&tables, NOW, &unused, &census);
	nat_near_renew(filter(), needed, ARRAY_SIZE(needed));
}

static void test_many_changes(void **state)
{
	uint64_t expected[NAT_NEAR_WORDS] = {0}, policy[NAT_NEAR_WORDS];
	uint64_t *words[CHANGES + 1];

	// Each policy has two backends, and leaves a connection of one of them.
	for (uint32_t n = 1; n <= CHANGES; n++) {
		memset(policy, 0, sizeof(policy));
		put_backend(policy, n);
		put_backend(policy, CHANGES + n);
		nat_near_add(filter(), policy);
		words[n] = connect_to(n, NAT_BLOCK, n);
		renew(policy);
		for (uint32_t id = 1; id <= n; id++)
			assert_true(has(filter(), backends[id].family, backends[id].addr,
					answers_from(id)));
	}
	// All but every tenth connection end.
	memcpy(expected, policy, sizeof(expected));
	put_sources(expected);
	for (uint32_t n = 1; n <= CHANGES; n++) {
		if (n % 10)
			*words[n] = 0;
		else
			put_backend(expected, n);
	}
	renew(policy);
	assert_memory_equal(filter(), expected, sizeof(expected));
}

// Its answers are known by the source.
static void test_a_connection_of_fullnat(void **state)
{
	uint64_t expected[NAT_NEAR_WORDS] = {0}, policy[NAT_NEAR_WORDS] = {0};

	connect_to(1, FULLNAT_BLOCK, 1);
	connect_to(2, FULLNAT_BLOCK, 2);
	put_sources(expected);
	renew(policy);
	assert_memory_equal(filter(), expected, sizeof(expected));
}

// An expired connection that the walk frees, a place that is being taken, and a backend that is not
// known.
static void test_what_needs_no_bit(void **state)
{
	uint64_t expected[NAT_NEAR_WORDS] = {0}, policy[NAT_NEAR_WORDS] = {0};

	*connect_to(1, NAT_BLOCK, 1) = nat_pack(NAT_TALKS, NOW - TALKS - 1, 1, 0);
	*connect_to(3, NAT_BLOCK, 2) |= NAT_CLAIMED;
	*connect_to(5, NAT_BLOCK, 3) = nat_pack(NAT_TALKS, NOW, BACKENDS, 0);
	put_sources(expected);
	renew(policy);
	assert_memory_equal(filter(), expected, sizeof(expected));
}

// The previous policy has an array of its own, with backends that the other one does not have.
static void test_backends_of_two_policies(void **state)
{
	uint64_t expected[NAT_NEAR_WORDS] = {0}, policy[NAT_NEAR_WORDS] = {0};

	tables.backends[0].n = 1;
	tables.backends[1] = (struct nat_backends){backends, BACKENDS};
	connect_to(9, NAT_BLOCK, 1);
	put_sources(expected);
	put_backend(expected, 9);
	renew(policy);
	assert_memory_equal(filter(), expected, sizeof(expected));
}

static bool lost;

static void *watch(void *done)
{
	while (!__atomic_load_n((bool *)done, __ATOMIC_ACQUIRE)) {
		uint64_t mix = nat_mix(4, backends[1].addr, answers_from(1));
		uint64_t word = __atomic_load_n(&filter()[nat_near_word(mix)], __ATOMIC_RELAXED);

		lost |= !(word >> nat_near_bit(mix) & 1);
	}
	return NULL;
}

// A bit of both policies is set at every moment.
static void test_a_reader_beside_changes(void **state)
{
	uint64_t policy[2][NAT_NEAR_WORDS] = {{0}};
	bool done = false;
	pthread_t reader;

	for (uint32_t p = 0; p < 2; p++) {
		memset(policy[p], p ? 0xff : 0, sizeof(policy[p]));
		put_backend(policy[p], 1);
	}
	nat_near_add(filter(), policy[0]);
	assert_int_equal(pthread_create(&reader, NULL, watch, &done), 0);
	for (uint32_t n = 0; n < RENEWALS; n++) {
		const uint64_t *const needed[] = {policy[n % 2]};

		nat_near_add(filter(), policy[n % 2]);
		nat_near_renew(filter(), needed, 1);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	assert_false(lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_changes, begin, end),
		cmocka_unit_test_setup_teardown(test_a_connection_of_fullnat, begin, end),
		cmocka_unit_test_setup_teardown(test_what_needs_no_bit, begin, end),
		cmocka_unit_test_setup_teardown(test_backends_of_two_policies, begin, end),
		cmocka_unit_test_setup_teardown(test_a_reader_beside_changes, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
