// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/rows.c: one of each, the bound, new numbers.
#include "tests/unit/base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/table/rows.h"

static void row_of(struct row *row, size_t words, uint64_t value)
{
	row_init(row, words);
	row_flip(row, value % words, value);
	row_flip(row, words - 1, value << 32);
}

static void test_each_row_once(void **state)
{
	const size_t words = 3, n = 50000;
	uint32_t *number = calloc(n, sizeof(*number));
	struct rows rows;
	struct row row;

	rows_init(&rows, words, 128 << 20);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < n; i++) {
			policy_row got;

			row_of(&row, words, i);
			got = rows_add(&rows, &row);
			assert_int_equal(got, round ? number[i] : i + 1);
			number[i] = got;
		}
	}
	assert_int_equal(rows.n, n + 1);
	for (size_t i = 0; i < n; i++) {
		const uint64_t *at = rows.at + number[i] * rows.words;

		row_of(&row, words, i);
		assert_memory_equal(at, row.word, words * sizeof(uint64_t));
	}
	rows_free(&rows);
	free(number);
}

// The hash does not depend on how the row was made, and an empty row is not row 0.
static void test_flips_and_the_empty_row(void **state)
{
	struct rows rows;
	struct row row;
	policy_row empty, some;

	rows_init(&rows, 64, 1 << 20);
	row_init(&row, 64);
	empty = rows_add(&rows, &row);
	assert_int_equal(empty, 1);
	for (size_t rule = 0; rule < 4096; rule += 7)
		row_flip_rule(&row, rule);
	some = rows_add(&rows, &row);
	assert_int_equal(some, 2);
	for (size_t rule = 4096 - 1; rule < 4096; rule--)
		if (rule % 7 == 0)
			row_flip_rule(&row, rule);
	assert_int_equal(rows_add(&rows, &row), empty);
	row_init(&row, 64);
	for (size_t rule = 4095 / 7 * 7; rule < 4096; rule -= 7)
		row_flip_rule(&row, rule);
	assert_int_equal(rows_add(&rows, &row), some);
	rows_free(&rows);
}

static void test_bound(void **state)
{
	const uint64_t bytes = 1 << 20;
	struct rows rows;
	struct row row;
	size_t n = 0;

	rows_init(&rows, 1, bytes);
	for (;; n++) {
		row_of(&row, 1, n);
		if (!rows_add(&rows, &row))
			break;
		assert_true(rows.cap * 8 + rows.n_buckets * sizeof(*rows.buckets) <= 2 * bytes);
	}
	assert_int_equal(rows.n, bytes / 8);
	assert_int_equal(n, bytes / 8 - 1); // row 0 takes room too
	row_of(&row, 1, 5);
	assert_int_not_equal(rows_add(&rows, &row), 0); // known ones are still found
	rows_free(&rows);
}

static void test_renumber(void **state)
{
	const uint32_t n = 1000;
	uint32_t *number = calloc(n, sizeof(*number)), *copy = calloc(n, sizeof(*copy));
	uint64_t s = 9;
	struct rows rows;
	struct row row;

	rows_init(&rows, 2, 1 << 20);
	for (uint32_t i = 1; i < n; i++) {
		row_init(&row, 2);
		row_flip(&row, i % 2, i);
		assert_int_equal(rows_add(&rows, &row), i);
	}
	for (uint32_t i = 0; i < n; i++)
		number[i] = i;
	for (uint32_t i = n - 1; i > 2; i--) { // Fisher and Yates, 0 and 1 stay
		uint32_t k = 2 + unit_below(&s, i - 1), swap = number[i];

		number[i] = number[k];
		number[k] = swap;
	}
	memcpy(copy, number, n * sizeof(*copy));
	rows_renumber(&rows, number);
	for (uint32_t i = 1; i < n; i++) {
		const uint64_t *moved = rows.at + (size_t)copy[i] * 2;

		assert_int_equal(moved[i % 2], i);
		assert_int_equal(moved[!(i % 2)], 0);
	}
	rows_free(&rows);
	free(number);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_once),
		cmocka_unit_test(test_flips_and_the_empty_row),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_renumber),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
