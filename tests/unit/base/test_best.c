// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/best.h: the bounded heap keeps what a full sort puts first.
#include "tests/unit/base/unit.h"

#include <stdlib.h>

#include "ctl/base/best.h"

#define ITEMS 1000

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

// Few ranks, so that many are equal.
static void offer_all(struct best *b, uint64_t ranks)
{
	uint64_t state = 4711;

	for (size_t at = 0; at < ITEMS; at++)
		best_offer(b, next_random(&state) % ranks, at);
	best_sort(b);
}

static void test_as_a_sort(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 10, ITEMS - 1, ITEMS, ITEMS + 1};

	for (uint64_t ranks = 1; ranks < 2000; ranks *= 7) {
		CLEANUP(best_free) struct best all = {.max = BEST_ALL};

		offer_all(&all, ranks);
		assert_int_equal(all.kept.n, ITEMS);
		for (size_t i = 1; i < ITEMS; i++)
			assert_true(all.kept.at[i - 1].rank < all.kept.at[i].rank ||
				    (all.kept.at[i - 1].rank == all.kept.at[i].rank &&
				     all.kept.at[i - 1].at < all.kept.at[i].at));
		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
			CLEANUP(best_free) struct best some = {.max = sizes[s]};

			offer_all(&some, ranks);
			assert_int_equal(some.kept.n, sizes[s] < ITEMS ? sizes[s] : ITEMS);
			assert_memory_equal(some.kept.at, all.kept.at,
					    some.kept.n * sizeof(*some.kept.at));
		}
	}
}

static void test_none(void **state)
{
	CLEANUP(best_free) struct best none = {.max = 0}, empty = {.max = 3};

	best_offer(&none, 1, 1);
	best_sort(&none);
	best_sort(&empty);
	assert_int_equal(none.kept.n + empty.kept.n, 0);
}

// A stream of any length takes only the memory of the kept items.
static void test_memory(void **state)
{
	CLEANUP(best_free) struct best b = {.max = 10};

	for (size_t at = 0; at < 100000; at++)
		best_offer(&b, 100000 - at, at);
	assert_true(b.kept.cap <= 64);
	best_sort(&b);
	assert_int_equal(b.kept.at[0].at, 99999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_a_sort),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
