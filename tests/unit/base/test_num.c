// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/num.c: numbers, near-numbers, and the formats.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define UNTOUCHED 4711

typedef int parse_fn(const char *, size_t, uint64_t, uint64_t, uint64_t *);

static void accepts(parse_fn *parse, const char *text, uint64_t want)
{
	uint64_t n = UNTOUCHED;
	int r = parse(text, strlen(text), 0, UINT64_MAX, &n);

	if (r || n != want)
		fail_msg("'%s': %d, %" PRIu64, text, r, n);
}

static void refuses(parse_fn *parse, const char *text, uint64_t min, uint64_t max, int want)
{
	uint64_t n = UNTOUCHED;
	int r = parse(text, strlen(text), min, max, &n);

	if (r != want || n != UNTOUCHED)
		fail_msg("'%s': %d, %" PRIu64, text, r, n);
}

// Invalid for every kind of number.
static const char *const no_numbers[] = {
	"",      " ",     "+1",    "-1",  "-0",
	" 1",    "1 ",    "\t1",   "1\n", "80abc",
	"abc",   "01",    "00",    "007", "0x10",
	"0b1",   "1e3",   "1.0",   "1.",  ".5",
	"1,000", "1_000", "1'000", "++1", "1+",
	"1-2",   "1/2",   "nan",   "inf", "١",
	"１",    "½",     "1\x80", "k",   "M",
	"s",     "ms",    "/",     ":",   "0 0",
	"1ks",   "1kk",   "1K",    "1m ", "99999999999999999999999x",
};

static void test_u64(void **state)
{
	accepts(num_parse_u64, "0", 0);
	accepts(num_parse_u64, "1", 1);
	accepts(num_parse_u64, "9", 9);
	accepts(num_parse_u64, "10", 10);
	accepts(num_parse_u64, "65535", 65535);
	accepts(num_parse_u64, "18446744073709551615", UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(no_numbers); i++)
		refuses(num_parse_u64, no_numbers[i], 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_u64, "1k", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_u64, "18446744073709551616", 0, UINT64_MAX, -ERANGE);
	refuses(num_parse_u64, "18446744073709551620", 0, UINT64_MAX, -ERANGE);
	refuses(num_parse_u64, "99999999999999999999", 0, UINT64_MAX, -ERANGE);
	refuses(num_parse_u64, "100000000000000000000000000000000000000", 0, UINT64_MAX, -ERANGE);
}

static void test_bounds(void **state)
{
	uint64_t n;

	refuses(num_parse_u64, "4", 5, 7, -ERANGE);
	refuses(num_parse_u64, "8", 5, 7, -ERANGE);
	refuses(num_parse_u64, "6", 7, 5, -ERANGE);
	assert_int_equal(num_parse_u64("5", 1, 5, 7, &n), 0);
	assert_int_equal(num_parse_u64("7", 1, 5, 7, &n), 0);
	assert_int_equal(num_parse_u64("0", 1, 0, 0, &n), 0);
}

// Only text[0..len) is read.
static void test_length_counts(void **state)
{
	uint64_t n = 0;

	assert_int_equal(num_parse_u64("12345", 3, 0, 1000, &n), 0);
	assert_int_equal(n, 123);
	assert_int_equal(num_parse_u64("1\0002", 3, 0, 1000, &n), -EINVAL);
	assert_int_equal(num_parse_u64("80", 0, 0, 1000, &n), -EINVAL);
	assert_int_equal(num_parse_time_ms("10ms", 3, 0, UINT64_MAX, &n), 0);
	assert_int_equal(n, 600000);
}

static void test_u32_u16(void **state)
{
	uint32_t wide = UNTOUCHED;
	uint16_t narrow = UNTOUCHED;

	assert_int_equal(num_parse_u32("4294967295", 10, 0, UINT32_MAX, &wide), 0);
	assert_int_equal(wide, UINT32_MAX);
	assert_int_equal(num_parse_u32("4294967296", 10, 0, UINT32_MAX, &wide), -ERANGE);
	assert_int_equal(num_parse_u32("x", 1, 0, UINT32_MAX, &wide), -EINVAL);
	assert_int_equal(wide, UINT32_MAX);
	assert_int_equal(num_parse_u16("65535", 5, 1, UINT16_MAX, &narrow), 0);
	assert_int_equal(narrow, 65535);
	assert_int_equal(num_parse_u16("65536", 5, 1, UINT16_MAX, &narrow), -ERANGE);
	assert_int_equal(num_parse_u16("0", 1, 1, UINT16_MAX, &narrow), -ERANGE);
	assert_int_equal(num_parse_u16("80abc", 5, 1, UINT16_MAX, &narrow), -EINVAL);
	assert_int_equal(narrow, 65535);
}

static void test_hex32(void **state)
{
	static const char *const bad[] = {"",     "0x",   "0X1",         "1",    "x1",
					  "0x1g", " 0x1", "0x1 ",        "0x-1", "0x+1",
					  "00x1", "0x 1", "0x123456789g"};
	static const struct {
		const char *text;
		uint32_t value;
	} good[] = {{"0x0", 0},
		    {"0x88a8", 0x88a8},
		    {"0xDEADbeef", 0xdeadbeef},
		    {"0xABCDEFaf", 0xabcdefaf},
		    {"0xffffffff", UINT32_MAX},
		    {"0x00000001", 1}};
	uint32_t n = UNTOUCHED;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(num_parse_hex32(bad[i], strlen(bad[i]), &n), -EINVAL);
	assert_int_equal(num_parse_hex32("0x100000000", 11, &n), -ERANGE);
	assert_int_equal(n, UNTOUCHED);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(num_parse_hex32(good[i].text, strlen(good[i].text), &n), 0);
		assert_int_equal(n, good[i].value);
	}
}

static void test_count(void **state)
{
	accepts(num_parse_count, "0", 0);
	accepts(num_parse_count, "0k", 0);
	accepts(num_parse_count, "20000", 20000);
	accepts(num_parse_count, "20k", 20000);
	accepts(num_parse_count, "3M", 3000000);
	accepts(num_parse_count, "18446744073709551k", 18446744073709551000u);
	for (size_t i = 0; i < ARRAY_SIZE(no_numbers); i++)
		refuses(num_parse_count, no_numbers[i], 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_count, "1m", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_count, "1G", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_count, "1 k", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_count, "01k", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_count, "18446744073709552k", 0, UINT64_MAX, -ERANGE);
	refuses(num_parse_count, "2k", 0, 1999, -ERANGE);
	refuses(num_parse_count, "2k", 2001, 9999, -ERANGE);
}

static void test_time(void **state)
{
	accepts(num_parse_time_ms, "250ms", 250);
	accepts(num_parse_time_ms, "0s", 0);
	accepts(num_parse_time_ms, "2s", 2000);
	accepts(num_parse_time_ms, "15m", 900000);
	accepts(num_parse_time_ms, "1h", 3600000);
	accepts(num_parse_time_ms, "1d", 86400000);
	accepts(num_parse_time_ms, "2w", 1209600000);
	accepts(num_parse_time_ms, "18446744073709551615ms", UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(no_numbers); i++)
		refuses(num_parse_time_ms, no_numbers[i], 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "0", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "10", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "1M", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "1min", 0, UINT64_MAX, -EINVAL);
	accepts(num_parse_time_ms, "1h30m", 5400000);
	accepts(num_parse_time_ms, "1w2d3h4m5s6ms", 788645006);
	refuses(num_parse_time_ms, "30m1h", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "1h1h", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "1h30", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "1h 30m", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "1hm", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "18446744073709551s616ms", 0, UINT64_MAX, -ERANGE);
	refuses(num_parse_time_ms, "1h30m", 0, 5399999, -ERANGE);
	refuses(num_parse_time_ms, "1.5h", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "5 m", 0, UINT64_MAX, -EINVAL);
	refuses(num_parse_time_ms, "18446744073709551615s", 0, UINT64_MAX, -ERANGE);
	refuses(num_parse_time_ms, "5s", 5001, 9000, -ERANGE);
}

static void test_random_round_trip(void **state)
{
	uint64_t seed = 1;

	for (int i = 0; i < 100000; i++) {
		uint64_t want = unit_random(&seed) >> unit_below(&seed, 64), n;
		char text[32];
		int len = snprintf(text, sizeof(text), "%" PRIu64, want);

		assert_int_equal(num_parse_u64(text, (size_t)len, 0, UINT64_MAX, &n), 0);
		assert_true(n == want);
	}
}

static void test_grouped(void **state)
{
	num_text buf;

	assert_string_equal(num_format_grouped(0, buf), "0");
	assert_string_equal(num_format_grouped(999, buf), "999");
	assert_string_equal(num_format_grouped(1000, buf), "1,000");
	assert_string_equal(num_format_grouped(18204, buf), "18,204");
	assert_string_equal(num_format_grouped(123456, buf), "123,456");
	assert_string_equal(num_format_grouped(1234567, buf), "1,234,567");
	assert_string_equal(num_format_grouped(UINT64_MAX, buf), "18,446,744,073,709,551,615");
}

static void test_short(void **state)
{
	static const struct {
		double n;
		const char *text;
	} cases[] = {
		{0, "0"},
		{0.04, "0"},
		{0.3, "0.3"},
		{1, "1"},
		{1.5, "1.5"},
		{9.94, "9.9"},
		{9.96, "10"},
		{42.4, "42"},
		{999, "999"},
		{999.4, "999"},
		{999.5, "1.0 k"},
		{1000, "1.0 k"},
		{1234, "1.2 k"},
		{999949, "999.9 k"},
		{999950, "1.0 M"},
		{3.4e6, "3.4 M"},
		{5.6e9, "5.6 G"},
		{7e12, "7.0 T"},
		{8e15, "8.0 P"},
		{9e18, "9.0 E"},
		{-0.01, "0"},
		{-0.3, "-0.3"},
		{-42, "-42"},
		{-1234, "-1.2 k"},
		{NAN, "-"},
		{INFINITY, "-"},
		{-INFINITY, "-"},
		{1e30, "1.0e+12 E"},
		{1e300, "1.0e+282 E"},
		{-1e300, "-1.0e+282 E"},
	};
	num_text buf;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(num_format_short(cases[i].n, buf), cases[i].text);
}

static void test_bytes(void **state)
{
	num_text buf;

	assert_string_equal(num_format_bytes(0, buf), "0 B");
	assert_string_equal(num_format_bytes(999, buf), "999 B");
	assert_string_equal(num_format_bytes(1000, buf), "1.0 kB");
	assert_string_equal(num_format_bytes(1234, buf), "1.2 kB");
	assert_string_equal(num_format_bytes(999949, buf), "999.9 kB");
	assert_string_equal(num_format_bytes(999951, buf), "1.0 MB");
	assert_string_equal(num_format_bytes(3400000, buf), "3.4 MB");
	assert_string_equal(num_format_bytes(UINT64_MAX, buf), "18.4 EB");
}

static void test_duration(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} cases[] = {
		{0, "0s"},
		{1, "1ms"},
		{250, "250ms"},
		{2000, "2s"},
		{2500, "2s 500ms"},
		{55 * 60000, "55m"},
		{3600000, "1h"},
		{3900000, "1h 5m"},
		{3905123, "1h 5m"},
		{3600000 + 5000, "1h 5s"},
		{86400000 + 60000, "1d 1m"},
		{10 * 86400000, "10d"},
		{UINT64_MAX, "213503982334d 14h"},
	};
	num_text buf;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(num_format_duration_ms(cases[i].ms, buf), cases[i].text);
}

static void test_prime(void **state)
{
	static const uint32_t primes[] = {2, 3, 5, 4093, 65521, 65537, 131071, 4294967291u};
	static const uint32_t others[] = {0, 1, 4, 9, 4095, 65521 * 3, 4293001441u, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(primes); i++)
		assert_true(num_is_prime(primes[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) // 4293001441 is the square of 65521
		assert_false(num_is_prime(others[i]));
}

static void test_span(void **state)
{
	static const struct {
		const char *text;
		int code;
		uint32_t first, last;
	} cases[] = {
		{"0", 0, 0, 0},          {"63", 0, 63, 63},     {"1-5", 0, 1, 5},
		{"5-1", 0, 5, 1},        {"", -EINVAL, 7, 7},   {"-", -EINVAL, 7, 7},
		{"1-", -EINVAL, 7, 7},   {"-5", -EINVAL, 7, 7}, {"1-2-3", -EINVAL, 7, 7},
		{"a-5", -EINVAL, 7, 7},  {"64", -ERANGE, 7, 7}, {"1-64", -ERANGE, 7, 7},
		{"64-1", -ERANGE, 7, 7},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t first = 7, last = 7;
		int code = num_parse_span(cases[i].text, 63, &first, &last);

		if (code != cases[i].code || first != cases[i].first || last != cases[i].last)
			fail_msg("'%s': %d, %u-%u", cases[i].text, code, first, last);
	}
}

static void test_plural(void **state)
{
	assert_string_equal(num_plural(0, "entry", "entries"), "entries");
	assert_string_equal(num_plural(1, "entry", "entries"), "entry");
	assert_string_equal(num_plural(2, "entry", "entries"), "entries");
	assert_string_equal(num_plural(UINT64_C(1) << 32 | 1, "entry", "entries"), "entries");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),           cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_length_counts), cmocka_unit_test(test_u32_u16),
		cmocka_unit_test(test_hex32),         cmocka_unit_test(test_count),
		cmocka_unit_test(test_time),          cmocka_unit_test(test_random_round_trip),
		cmocka_unit_test(test_grouped),       cmocka_unit_test(test_short),
		cmocka_unit_test(test_bytes),         cmocka_unit_test(test_duration),
		cmocka_unit_test(test_prime),         cmocka_unit_test(test_plural),
		cmocka_unit_test(test_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
