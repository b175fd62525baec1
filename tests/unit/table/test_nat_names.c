// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/nat_names.c: each end and source is found as packets find it, whatever
// else moves.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "ctl/table/nat_names.h"
#include "tests/unit/base/unit.h"

#define ENDS    3000 // more than a table of 1,024 services ever has
#define SOURCES 200

static struct nat_table table;
static uint64_t seed = 1;

static int empty(void **state)
{
	memset(&table, 0, sizeof(table));
	return 0;
}

// The look-up of the datapath.
static bool finds_end(uint32_t number)
{
	const struct nat_end *e = &table.end[number];
	uint64_t mix = nat_mix((int)e->family, e->vip, e->port_proto);

	return table.end_at[0][nat_end_cell(mix, 0)] == number ||
	       table.end_at[1][nat_end_cell(mix, 1)] == number;
}

static bool finds_source(int family, uint32_t block)
{
	uint64_t mix = nat_mix((int)family, table.block[family == 6][block].source, 0);

	if (!(table.near[nat_near_word(mix)] >> nat_near_bit(mix) & 1))
		return false;
	return table.source_at[family == 6][0][nat_source_cell(mix, 0)] == block + 1 ||
	       table.source_at[family == 6][1][nat_source_cell(mix, 1)] == block + 1;
}

static void make_end(uint32_t number)
{
	struct nat_end *e = &table.end[number];

	e->family = unit_below(&seed, 2) ? 6 : 4;
	e->port_proto = nat_port_proto((uint16_t)unit_random(&seed), 6);
	for (int i = 0; i < (e->family == 4 ? 1 : 4); i++)
		e->vip[i] = (uint32_t)unit_random(&seed);
}

static void test_ends(void **state)
{
	for (uint32_t n = 1; n <= ENDS; n++) {
		make_end(n);
		assert_int_equal(nat_end_put(&table, n), 0);
	}
	for (uint32_t n = 1; n <= ENDS; n++)
		assert_true(finds_end(n));
	for (uint32_t n = 1; n <= ENDS; n += 2)
		nat_end_take(&table, n);
	for (uint32_t n = 1; n <= ENDS; n++)
		assert_int_equal(finds_end(n), n % 2 == 0);
}

// Three with the same two cells: only two have room.
static void test_no_room(void **state)
{
	static struct nat_table before;

	for (uint32_t n = 1; n <= 3; n++)
		table.end[n] = (struct nat_end){.family = 4, .vip = {1}, .port_proto = 80};
	assert_int_equal(nat_end_put(&table, 1), 0);
	assert_int_equal(nat_end_put(&table, 2), 0);
	before = table;
	assert_int_equal(nat_end_put(&table, 3), -ENOSPC);
	assert_memory_equal(&before, &table, sizeof(table));
}

// Sources of one network, of both families.
static void test_sources(void **state)
{
	for (int family = 4; family <= 6; family += 2)
		for (uint32_t b = 0; b < SOURCES; b++) {
			uint32_t *source = table.block[family == 6][b].source;

			source[0] = family == 4 ? 0x0a000000 | b : 0xfd000000;
			source[3] = family == 4 ? 0 : b;
			assert_int_equal(nat_source_put(&table, family, b), 0);
		}
	nat_source_take(&table, 4, 7);
	for (uint32_t b = 0; b < SOURCES; b++) {
		assert_int_equal(finds_source(4, b), b != 7);
		assert_true(finds_source(6, b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ends, empty),
		cmocka_unit_test_setup(test_no_room, empty),
		cmocka_unit_test_setup(test_sources, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
