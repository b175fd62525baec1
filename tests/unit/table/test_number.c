// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/number.c: rows of hosts get low numbers.
#include "tests/unit/base/unit.h"

#include "ctl/table/number.h"

// 70,000 rows; 30,000 hosts, of which 10,000 have one row.
static void test_hosts_get_low_numbers(void **state)
{
	const uint32_t n = 70000;
	struct regions regions = {0};
	__u32 fields[] = {1, n - 1, 2, 59000};
	struct number_regions list = {&regions, 4, true};
	struct rows rows;
	struct row row;
	size_t hosts = 0;

	rows_init(&rows, 2, 64 << 20);
	for (uint32_t i = 1; i < n; i++) {
		row_init(&row, 2);
		row_flip(&row, 0, i);
		rows_add(&rows, &row);
	}
	regions_add(&regions, 0, 2);
	for (uint32_t i = 0; i < 30000; i++) {
		policy_row host = i < 10000 ? n - 1 : n - 1 - i;

		regions_add(&regions, key_of4(i * 1000 + 500), host);
		regions_add(&regions, key_of4(i * 1000 + 501), 2);
	}
	number_rows(&rows, fields, 4, &list, 1);
	assert_int_equal(fields[0], 1);
	assert_int_equal(fields[1], 2); // of 10,000 hosts
	assert_true(fields[3] < 30000);
	for (size_t i = 0; i < regions.n; i++) {
		bool host = lines_hosts(&regions, i, 4);

		hosts += host;
		assert_true(!host || regions.at[i].row <= UINT16_MAX);
		assert_true(host || regions.at[i].row == fields[2]);
	}
	assert_int_equal(hosts, 30000);
	assert_int_equal(rows.at[2 * 2], n - 1);
	assert_int_equal(rows.at[fields[2] * 2], 2);
	rows_free(&rows);
	vec_free(&regions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts_get_low_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
