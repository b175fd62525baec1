// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/nat_cells.c: shares, what a change moves, and connections through random
// changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "ctl/table/nat_cells.h"
#include "tests/unit/base/unit.h"

#define CONNECTIONS 4000
#define CHANGES     200

static uint64_t cells[NAT_CELLS];
static uint64_t seed = 1;

static void change(const char *blocks)
{
	uint8_t at[32];
	size_t n = strlen(blocks);

	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(blocks[i] - 'a');
	assert_int_equal(nat_cells_change(cells, at, n), 0);
}

static size_t newest(char block)
{
	return nat_cells_newest(cells, (uint8_t)(block - 'a'));
}

static size_t named(char block)
{
	return nat_cells_named(cells, (uint8_t)(block - 'a'));
}

static int empty(void **state)
{
	memset(cells, 0, sizeof(cells));
	return 0;
}

// ---- changes ------------------------------------------------------------------------------------

static void test_equal_shares(void **state)
{
	change("a");
	assert_int_equal(newest('a'), 1024);
	change("abc");
	assert_int_equal(newest('a'), 342);
	assert_int_equal(newest('b'), 341);
	assert_int_equal(newest('c'), 341);
	assert_int_equal(named('a'), 1024);
	change("abcd");
	assert_int_equal(newest('d'), 256);
	assert_int_equal(newest('a'), 256);
}

static void test_the_same_blocks_change_nothing(void **state)
{
	uint64_t before[NAT_CELLS];

	change("abc");
	memcpy(before, cells, sizeof(before));
	change("cab");
	assert_memory_equal(before, cells, sizeof(before));
}

// A block that is added takes its share, and no other cell changes; one that is removed gives its
// cells away, and they remember it.
static void test_few_cells_change(void **state)
{
	uint64_t before[NAT_CELLS];
	size_t changed = 0;

	change("ab");
	memcpy(before, cells, sizeof(before));
	change("abc");
	for (size_t c = 0; c < NAT_CELLS; c++)
		changed += cells[c] != before[c];
	assert_int_equal(changed, 341);
	change("ab");
	assert_int_equal(newest('c'), 0);
	assert_int_equal(named('c'), 341);
}

// A cell names a block once, in the first place again if it returns.
static void test_a_block_returns(void **state)
{
	change("a");
	change("b");
	change("a");
	for (size_t c = 0; c < NAT_CELLS; c++)
		assert_int_equal(cells[c], 0x0201);
}

static void test_a_ninth_block(void **state)
{
	uint64_t before[NAT_CELLS];
	uint8_t ninth = 8;

	for (const char *block = "a\0b\0c\0d\0e\0f\0g\0h\0"; *block; block += 2)
		change(block);
	memcpy(before, cells, sizeof(before));
	assert_int_equal(nat_cells_change(cells, &ninth, 1), -ENOSPC);
	assert_memory_equal(before, cells, sizeof(before));
	change("a");
	assert_int_equal(newest('a'), 1024);
}

// Only cells without room forget a block, the oldest.
static void test_force(void **state)
{
	uint8_t ninth = 8;

	for (const char *block = "a\0b\0c\0d\0e\0f\0g\0h\0"; *block; block += 2)
		change(block);
	cells[7] >>= 8;
	nat_cells_force(cells, &ninth, 1);
	assert_int_equal(cells[0], 0x0203040506070809);
	assert_int_equal(cells[7], 0x0102030405060709);
}

// ---- walks --------------------------------------------------------------------------------------

static bool lives_in_b(const void *arg, uint32_t cell, uint8_t block)
{
	return block == 1 && cell < *(const uint32_t *)arg;
}

static void test_walk(void **state)
{
	uint32_t first = 100;

	change("a");
	change("b");
	change("c");
	assert_int_equal(nat_cells_walk(cells, lives_in_b, &first), 1024 + 924);
	assert_int_equal(named('a'), 0);
	assert_int_equal(named('b'), 100);
	assert_int_equal(newest('c'), 1024);
	assert_int_equal(cells[0], 0x0203);
	assert_int_equal(cells[100], 0x03);
}

// Without a block for new connections, each one is removed when it has no connection left.
static void test_end(void **state)
{
	uint32_t first = 100;

	change("a");
	change("b");
	nat_cells_end(cells);
	nat_cells_end(cells);
	assert_int_equal(cells[0], 0x010200);
	nat_cells_walk(cells, lives_in_b, &first);
	assert_int_equal(cells[0], 0x0200);
	assert_int_equal(cells[100], 0);
	change("c");
	assert_int_equal(cells[0], 0x0203);
	for (const char *block = "d\0e\0f\0g\0h\0i\0"; *block; block += 2)
		change(block);
	nat_cells_end(cells);
	assert_int_equal(cells[0], 0x0203040506070809);
	assert_int_equal(cells[100], 0x0304050607080900);
}

// ---- connections --------------------------------------------------------------------------------

static struct connection {
	uint32_t cell;
	uint8_t block;
	uint32_t left; // changes until it ends
} connections[CONNECTIONS];

static bool names(uint64_t cell, uint8_t block)
{
	for (unsigned int d = 0; d < NAT_DEPTH; d++)
		if ((cell >> 8 * d & 0xff) == block + 1u)
			return true;
	return false;
}

static void renew(struct connection *c)
{
	c->cell = unit_below(&seed, NAT_CELLS);
	c->block = (uint8_t)((cells[c->cell] & 0xff) - 1);
	c->left = unit_below(&seed, 6);
}

static bool lives(const void *arg, uint32_t cell, uint8_t block)
{
	for (size_t c = 0; c < CONNECTIONS; c++)
		if (connections[c].cell == cell && connections[c].block == block)
			return true;
	return false;
}

// One block less, one more, or another set.
static size_t draw_blocks(uint8_t *at)
{
	size_t n = 0;

	while (!n)
		for (uint8_t b = 0; b < 12; b++)
			if (unit_below(&seed, 3) == 0)
				at[n++] = b;
	return n;
}

// Returns how many connections were in a block that their cell did not name.
static size_t play(bool walks, size_t *ret_refused)
{
	size_t lost = 0;
	uint8_t at[12];

	*ret_refused = 0;
	memset(cells, 0, sizeof(cells));
	change("a");
	for (size_t c = 0; c < CONNECTIONS; c++)
		renew(&connections[c]);
	for (size_t step = 0; step < CHANGES; step++) {
		size_t n = draw_blocks(at);

		*ret_refused += nat_cells_change(cells, at, n) != 0;
		for (size_t c = 0; c < CONNECTIONS; c++) {
			lost += !names(cells[connections[c].cell], connections[c].block);
			if (!connections[c].left--)
				renew(&connections[c]);
		}
		if (walks)
			nat_cells_walk(cells, lives, NULL);
	}
	return lost;
}

static void test_no_connection_is_lost(void **state)
{
	size_t refused;

	assert_int_equal(play(true, &refused), 0);
	assert_int_equal(refused, 0);
	assert_int_equal(play(false, &refused), 0);
	assert_true(refused > CHANGES / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_equal_shares, empty),
		cmocka_unit_test_setup(test_the_same_blocks_change_nothing, empty),
		cmocka_unit_test_setup(test_few_cells_change, empty),
		cmocka_unit_test_setup(test_a_block_returns, empty),
		cmocka_unit_test_setup(test_a_ninth_block, empty),
		cmocka_unit_test_setup(test_force, empty),
		cmocka_unit_test_setup(test_walk, empty),
		cmocka_unit_test_setup(test_end, empty),
		cmocka_unit_test(test_no_connection_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
