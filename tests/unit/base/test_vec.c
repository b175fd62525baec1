// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/vec.h and vec.c.
#include "tests/unit/base/unit.h"

#include "ctl/base/vec.h"

struct pair {
	char key;
	uint64_t value;
};

static void test_empty(void **state)
{
	VEC(int) v = {0};
	int seen = 0;

	vec_each (&v, item)
		seen += 1 + *item;
	assert_int_equal(seen, 0);
	vec_free(&v);
	assert_null(v.at);
}

static void test_grows_and_keeps(void **state)
{
	VEC(struct pair) v = {0};
	uint64_t next = 0;

	for (uint64_t i = 0; i < 100000; i++)
		*vec_add(&v) = (struct pair){(char)i, i};
	assert_int_equal(v.n, 100000);
	assert_true(v.cap >= v.n && v.cap <= 2 * v.n);
	vec_each (&v, pair) {
		assert_int_equal(pair->value, next);
		assert_int_equal(pair->key, (char)next);
		next++;
	}
	assert_int_equal(next, 100000);
	assert_int_equal(vec_last(&v)->value, 99999);
	vec_free(&v);
	assert_int_equal(v.n + v.cap, 0);
}

static void test_reserve_keeps_the_place(void **state)
{
	VEC(int) v = {0};
	int *first;

	vec_reserve(&v, 1000);
	assert_true(v.cap >= 1000);
	vec_push(&v, 1);
	first = v.at;
	for (int i = 1; i < 1000; i++)
		vec_push(&v, i + 1);
	assert_ptr_equal(first, v.at);
	vec_free(&v);
}

static void test_usable_after_free(void **state)
{
	VEC(const char *) v = {0};

	vec_push(&v, "a");
	vec_free(&v);
	vec_push(&v, "b");
	assert_int_equal(v.n, 1);
	assert_string_equal(v.at[0], "b");
	vec_free(&v);
}

static unsigned sum(const unsigned *const *numbers, size_t n)
{
	const struct {
		const unsigned *const *at;
		size_t n;
	} view = {numbers, n};
	unsigned total = 0;

	vec_each (&view, number)
		total += **number;
	return total;
}

static void test_each_over_a_constant(void **state)
{
	unsigned one = 1, two = 2;
	const unsigned *const numbers[] = {&one, &two};

	assert_int_equal(sum(numbers, 2), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_grows_and_keeps),
		cmocka_unit_test(test_reserve_keeps_the_place),
		cmocka_unit_test(test_usable_after_free),
		cmocka_unit_test(test_each_over_a_constant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
