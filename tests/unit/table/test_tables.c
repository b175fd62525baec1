// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/tables.c: where tables lie, that they are zeroed, and what constants say.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/table/tables.h"

static bool is_zero(const struct tables *t, size_t offset, size_t n)
{
	for (size_t i = offset; i < offset + n; i++)
		if (t->at[i])
			return false;
	return true;
}

// Random sizes, 0 too: each table begins at its own cache line, after the one before, and nothing
// moves in it.
static void test_add(void **state)
{
	struct tables t = {0};
	size_t offset[500], size[500];
	uint64_t s = 1;

	for (unsigned i = 0; i < 500; i++) {
		size[i] = unit_below(&s, 4) ? unit_below(&s, 300) : unit_below(&s, 20000);
		offset[i] = tables_add(&t, size[i]);
		assert_int_equal(offset[i] % TABLE_ALIGN, 0);
		assert_true(!i || offset[i] >= offset[i - 1] + size[i - 1]);
		assert_true(!i || offset[i] < offset[i - 1] + size[i - 1] + TABLE_ALIGN);
		assert_int_equal(t.n, offset[i] + size[i]);
		assert_true(t.cap >= t.n);
		assert_true(is_zero(&t, offset[i], size[i]));
		memset(t.at + offset[i], (int)(1 + i % 255), size[i]);
	}
	for (unsigned i = 0; i < 500; i++)
		for (size_t b = 0; b < size[i]; b++)
			assert_int_equal(t.at[offset[i] + b], 1 + i % 255);
	for (unsigned i = 1; i < 500; i++) // between tables
		assert_true(is_zero(&t, offset[i - 1] + size[i - 1],
				    offset[i] - offset[i - 1] - size[i - 1]));
	tables_free(&t);
	assert_null(t.at);
	assert_int_equal(t.n + t.cap, 0);
}

// Every constant has a different index.
static void test_constants(void **state)
{
	struct tables t = {0};
	const uint8_t byte = 42;
	size_t at;
	int set = 0;

	for (int side = 0; side < TABLE_SIDES; side++)
		for (int name = 0; name < TABLE_SIDE_CONSTANTS; name++, set++)
			tables_number(&t, SIDE_CONSTANT(side, name), 1000 + (uint64_t)set);
	for (int matrix = 0; matrix < TABLE_MATRICES; matrix++)
		for (int name = 0; name < TABLE_MATRIX_CONSTANTS; name++, set++)
			tables_number(&t, MATRIX_CONSTANT(matrix, name), 1000 + (uint64_t)set);
	for (int name = 0; name < TABLE_VIP_CONSTANTS; name++, set++)
		tables_number(&t, VIP_CONSTANT(name), 1000 + (uint64_t)set);
	for (int name = 0; name < TABLE_LIST_CONSTANTS; name++, set++)
		tables_number(&t, LIST_CONSTANT(name), 1000 + (uint64_t)set);
	assert_int_equal(set, TABLE_CONSTANTS);
	for (int i = 0; i < TABLE_CONSTANTS; i++) {
		assert_true(t.constant[i].set && !t.constant[i].address);
		assert_int_equal(TABLE_NUMBER(&t, i), 1000 + i);
	}
	tables_add(&t, 1);
	at = tables_add(&t, 1);
	t.at[at] = byte;
	tables_address(&t, SIDE_CONSTANT(SIDE_MEMBER, T6_CELLS), at);
	assert_true(t.constant[SIDE_CONSTANT(SIDE_MEMBER, T6_CELLS)].address);
	assert_int_equal(*TABLE_AT(&t, SIDE_CONSTANT(SIDE_MEMBER, T6_CELLS)), byte);
	tables_number(&t, SIDE_CONSTANT(SIDE_MEMBER, T6_CELLS), 5);
	assert_false(t.constant[SIDE_CONSTANT(SIDE_MEMBER, T6_CELLS)].address);
	tables_free(&t);
	assert_false(t.constant[0].set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_constants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
