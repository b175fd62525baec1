// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/mac.c.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mac.h"

static const struct {
	const char *text;
	uint64_t mac;
} valid[] = {
	{"00:00:00:00:00:00", 0},
	{"ff:ff:ff:ff:ff:ff", MAC_LAST},
	{"02:00:5e:00:53:01", 0x02005e005301},
	{"12:34:56:78:9a:bc", 0x123456789abc},
};

static const char *const invalid[] = {
	"",
	"0",
	"2:0:5e:0:53:1",
	"02:00:5e:00:53",
	"02:00:5e:00:53:0",
	"02:00:5e:00:53:01:02",
	"02:00:5e:00:53:001",
	"02:00:5e:00:53:0g",
	"02-00-5e-00-53-01",
	"02005e005301",
	"0x:00:5e:00:53:01",
	" 2:00:5e:00:53:01",
	"+2:00:5e:00:53:01",
	"02:00:5e:00:53.01",
	"02:00:5e:00::5301",
	":2:00:5e:00:53:01",
	"0200:5e:00:53:01:",
};

static void test_valid(void **state)
{
	mac_text text;

	for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++) {
		uint64_t mac = 1;

		assert_int_equal(mac_parse(valid[i].text, strlen(valid[i].text), &mac), 0);
		assert_int_equal(mac, valid[i].mac);
		assert_string_equal(mac_format(mac, text), valid[i].text);
	}
}

static void test_bytes(void **state)
{
	assert_int_equal(mac_of_bytes((const uint8_t[]){0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54}),
			 0xfedcba987654);
}

static void test_shared(void **state)
{
	static const struct {
		uint64_t first, last;
	} shared[] = {{0x00005e000100, 0x00005e0002ff},
		      {0x00000c07ac00, 0x00000c07acff},
		      {0x00000c9ff000, 0x00000c9fffff},
		      {0x000573a00000, 0x000573a00fff},
		      {0x0007b4000000, 0x0007b40fffff}};

	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
		assert_true(mac_is_shared(shared[i].first) && mac_is_shared(shared[i].last));
		assert_false(mac_is_shared(shared[i].first - 1));
		assert_false(mac_is_shared(shared[i].last + 1));
	}
	assert_false(mac_is_shared(0) || mac_is_shared(MAC_LAST));
}

static void test_capitals(void **state)
{
	uint64_t mac = 0;

	assert_int_equal(mac_parse("0A:bC:dE:F0:12:ff-", 17, &mac), 0);
	assert_int_equal(mac, 0x0abcdef012ff);
}

static void test_invalid(void **state)
{
	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++) {
		uint64_t mac = 42;

		if (mac_parse(invalid[i], strlen(invalid[i]), &mac) != -EINVAL)
			fail_msg("'%s' was read", invalid[i]);
		assert_int_equal(mac, 42);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),   cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_shared),  cmocka_unit_test(test_capitals),
		cmocka_unit_test(test_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
