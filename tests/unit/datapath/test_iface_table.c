// SPDX-License-Identifier: GPL-2.0-only
// The most interfaces, with any indexes, during look-ups of packets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ctl/datapath/iface_table.h"

#define MOST (WEIR_IFACES - 1)

typedef uint32_t index_of(uint32_t n);

static uint32_t consecutive(uint32_t n)
{
	return n + 1;
}

static uint32_t of_one_residue(uint32_t n)
{
	return 7 + n * 256;
}

static uint32_t of_one_residue_far_up(uint32_t n)
{
	return 0x7fffff00u - n * 65536;
}

static uint32_t of_high_bits(uint32_t n)
{
	return (n + 1) << 24;
}

static uint32_t powers_and_neighbours(uint32_t n)
{
	return n < 31 ? 1u << n : n < 62 ? (1u << (n - 30)) + 1 : 0x7fffffff;
}

// Indexes with the same bucket under the first multiplier: a counter-example to any fixed
// multiplier.
static uint32_t that_meet_at_first(uint32_t n)
{
	static struct knobs knobs;
	uint32_t found = 0;

	iface_table_begin(&knobs);
	for (uint32_t index = 1;; index++)
		if (iface_bucket(knobs.iface_hash, index) == 100 && found++ == n)
			return index;
}

static index_of *const kinds[] = {consecutive,  of_one_residue,        of_one_residue_far_up,
				  of_high_bits, powers_and_neighbours, that_meet_at_first};

static struct knobs *empty(void)
{
	struct knobs *knobs = calloc(1, sizeof(*knobs));

	assert_non_null(knobs);
	iface_table_begin(knobs);
	return knobs;
}

static void takes_all(void **state)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		struct knobs *knobs = empty();

		for (uint32_t n = 0; n < MOST; n++) {
			assert_int_equal(iface_table_find(knobs, kinds[k](n)), 0);
			assert_int_equal(iface_table_set(knobs, kinds[k](n), n + 1), 0);
			for (uint32_t m = 0; m <= n; m++)
				assert_int_equal(iface_table_find(knobs, kinds[k](m)), m + 1);
		}
		free(knobs);
	}
}

static void common_ones_change_no_multiplier(void **state)
{
	struct knobs *knobs = empty();
	uint64_t hash = knobs->iface_hash;

	for (uint32_t n = 0; n < MOST; n++)
		assert_int_equal(iface_table_set(knobs, 1000 + n, n + 1), 0);
	assert_true(knobs->iface_hash == hash);
	free(knobs);
}

// Removing one keeps the others, and makes room.
static void come_and_go(void **state)
{
	struct knobs *knobs = empty();
	uint32_t index[WEIR_IFACES] = {0};

	srandom(1);
	for (int round = 0; round < 2000; round++) {
		uint32_t number = 1 + (uint32_t)random() % MOST;

		if (index[number])
			assert_int_equal(iface_table_set(knobs, index[number], 0), 0);
		assert_int_equal(iface_table_find(knobs, index[number]), 0);
		index[number] = round % 3 ? 1 + (uint32_t)random() % 0x7fffffff : 0;
		if (index[number])
			assert_int_equal(iface_table_set(knobs, index[number], number), 0);
		for (uint32_t n = 1; n < WEIR_IFACES; n++)
			assert_int_equal(iface_table_find(knobs, index[n]), index[n] ? n : 0);
	}
	free(knobs);
}

static void another_number(void **state)
{
	struct knobs *knobs = empty();

	assert_int_equal(iface_table_set(knobs, 5, 1), 0);
	assert_int_equal(iface_table_set(knobs, 5, 2), 0);
	assert_int_equal(iface_table_find(knobs, 5), 2);
	assert_int_equal(iface_table_set(knobs, 6, 0), 0);
	assert_int_equal(iface_table_set(knobs, 5, 0), 0);
	assert_int_equal(iface_table_set(knobs, 5, 0), 0);
	assert_int_equal(iface_table_find(knobs, 5), 0);
	assert_int_equal(iface_table_find(knobs, 0), 0);
	free(knobs);
}

static void refuses_too_many(void **state)
{
	struct knobs *knobs = empty();
	int code;
	uint32_t taken = 0;

	while (!(code = iface_table_set(knobs, that_meet_at_first(taken), 1)))
		taken++;
	assert_int_equal(code, -ENOSPC);
	assert_in_range(taken, MOST, WEIR_IFACE_BUCKETS);
	for (uint32_t n = 0; n <= taken; n++)
		assert_int_equal(iface_table_find(knobs, that_meet_at_first(n)), n < taken);
	free(knobs);
}

struct watcher {
	const struct knobs *knobs;
	bool stop;
	unsigned long looks, lost;
};

// As in the datapath, but no grace period waits for a thread: a result counts only if the hash is
// the same afterwards.
static void *look(void *arg)
{
	struct watcher *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		uint64_t hash = __atomic_load_n(&w->knobs->iface_hash, __ATOMIC_ACQUIRE);
		const __u64 *slot = &w->knobs->iface_buckets[iface_bucket(hash, 77)];

		w->lost += __atomic_load_n(slot, __ATOMIC_ACQUIRE) != IFACE_BUCKET(77, 63) &&
			   __atomic_load_n(&w->knobs->iface_hash, __ATOMIC_ACQUIRE) == hash;
		__atomic_add_fetch(&w->looks, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void a_reader_loses_nothing(void **state)
{
	struct knobs *knobs = empty();
	struct watcher w = {.knobs = knobs};
	pthread_t thread;
	uint64_t hash = knobs->iface_hash;
	unsigned changes = 0;

	assert_int_equal(iface_table_set(knobs, 77, 63), 0);
	assert_int_equal(pthread_create(&thread, NULL, look, &w), 0);
	while (!__atomic_load_n(&w.looks, __ATOMIC_ACQUIRE))
		sched_yield();
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t n = 0; n < MOST - 1; n++)
			assert_int_equal(iface_table_set(knobs, 7 + n * 256 + round, n + 1), 0);
		changes += hash != knobs->iface_hash;
		hash = knobs->iface_hash;
		for (uint32_t n = 0; n < MOST - 1; n++)
			assert_int_equal(iface_table_set(knobs, 7 + n * 256 + round, 0), 0);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_true(changes > 0);
	assert_int_equal(w.lost, 0);
	free(knobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_all),
		cmocka_unit_test(common_ones_change_no_multiplier),
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(another_number),
		cmocka_unit_test(refuses_too_many),
		cmocka_unit_test(a_reader_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
