// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/datapath/connections and common/connections.h: room of the table, and which
// sources are one.
#include "tests/unit/base/unit.h"

#include "ctl/datapath/connections.h"

#define SEED 0x123456789abcdef1ull

static void test_elements(void **state)
{
	struct image image = {0};

	assert_int_equal(connections_elements(&image), 1);
	image.n_connection_rules = 1;
	for (uint32_t sources = 1; sources <= 16777216; sources *= 2) {
		size_t lines;

		image.connection_sources = sources;
		lines = (connections_elements(&image) - 1) / 2;
		assert_int_equal(lines & (lines - 1), 0);
		assert_true(lines * CONNECTION_WORDS >= 2ull * sources);
		assert_true(lines == 2 || lines * CONNECTION_WORDS < 4ull * sources);
	}
}

static uint64_t hash4(uint8_t mask, uint32_t address)
{
	const struct connection_rule rule = {.mask4 = mask, .mask6 = 64};

	return connection_hash(SEED, rule, 1, 4, (uint64_t)address << 32, 0, 0);
}

static uint64_t hash6(uint8_t mask, uint64_t high, uint64_t low)
{
	const struct connection_rule rule = {.mask4 = 32, .mask6 = mask};

	return connection_hash(SEED, rule, 1, 6, high, low, 0);
}

// Addresses with the same first bits are one source, and no others are.
static void test_masks(void **state)
{
	for (uint8_t mask = 0; mask <= 32; mask++)
		for (unsigned bit = 0; bit < 32; bit++)
			assert_int_equal(hash4(mask, 0xc0000201) ==
						 hash4(mask, 0xc0000201 ^ 1u << (31 - bit)),
					 bit >= mask);
	for (unsigned mask = 0; mask <= 128; mask++)
		for (unsigned bit = 0; bit < 128; bit++) {
			uint64_t high = bit < 64 ? 1ull << (63 - bit) : 0;
			uint64_t low = bit < 64 ? 0 : 1ull << (127 - bit);

			assert_int_equal(hash6((uint8_t)mask, 5, 7) ==
						 hash6((uint8_t)mask, 5 ^ high, 7 ^ low),
					 bit >= mask);
		}
}

static void test_keys(void **state)
{
	const struct connection_rule rule = {.mask4 = 32, .mask6 = 64};
	uint64_t hash = connection_hash(SEED, rule, 1, 4, 1ull << 32, 0, 0);

	assert_int_not_equal(hash, connection_hash(SEED + 2, rule, 1, 4, 1ull << 32, 0, 0));
	assert_int_not_equal(hash, connection_hash(SEED, rule, 2, 4, 1ull << 32, 0, 0));
	assert_int_not_equal(hash, connection_hash(SEED, rule, 1, 6, 1ull << 32, 0, 0));
	assert_int_not_equal(hash, connection_hash(SEED, rule, 1, 4, 1ull << 32, 0, 22));
	assert_int_equal(connection_tag(hash) & ((1 << CONNECTION_COUNT) - 1), 0);
	for (uint64_t lines = 2; lines <= 1 << 20; lines *= 2) {
		assert_true(connection_line(hash, lines, 0) < lines);
		assert_true(connection_line(hash, lines, 1) < lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
