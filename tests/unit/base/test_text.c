// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/text.c.
#include "tests/unit/base/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

static void test_empty(void **state)
{
	struct text t = {0};
	char *taken;

	assert_string_equal(text_get(&t), "");
	text_free(&t);
	taken = text_take(&t);
	assert_string_equal(taken, "");
	free(taken);
	text_add(&t, "");
	assert_non_null(t.at);
	assert_string_equal(t.at, "");
	text_free(&t);
}

static void test_adds_in_order(void **state)
{
	CLEANUP(text_free) struct text t = {0};

	text_add(&t, "a");
	text_addc(&t, 'b');
	text_addn(&t, "cdef", 2);
	text_addf(&t, "%d%s", 42, "!");
	assert_string_equal(text_get(&t), "abcd42!");
	assert_int_equal(t.len, 7);
}

static void test_bytes_of_zero_count(void **state)
{
	CLEANUP(text_free) struct text t = {0};

	text_addn(&t, "a\0b", 3);
	text_addc(&t, '\0');
	assert_int_equal(t.len, 4);
	assert_memory_equal(t.at, "a\0b\0\0", 5);
}

// Every length around the sizes at which the memory grows.
static void test_formats_of_any_length(void **state)
{
	for (int len = 0; len < 600; len++) {
		CLEANUP(text_free) struct text t = {0};

		text_addf(&t, "%*s", len, "");
		text_addf(&t, "%s", "end");
		assert_int_equal(t.len, (size_t)len + 3);
		assert_int_equal(strspn(t.at, " "), (size_t)len);
		assert_string_equal(t.at + len, "end");
		assert_true(t.cap > t.len);
	}
}

static void test_grows_by_bytes(void **state)
{
	CLEANUP(text_free) struct text t = {0};

	for (unsigned i = 0; i < 100000; i++)
		text_addc(&t, (char)('a' + i % 26));
	assert_int_equal(t.len, 100000);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(t.at[i], 'a' + (int)(i % 26));
}

static void test_take_empties(void **state)
{
	struct text t = {0};
	CLEANUP_FREE char *first = NULL, *second = NULL;

	text_add(&t, "one");
	first = text_take(&t);
	assert_null(t.at);
	assert_int_equal(t.len + t.cap, 0);
	text_add(&t, "two");
	second = text_take(&t);
	assert_string_equal(first, "one");
	assert_string_equal(second, "two");
}

// An encoder of its own, to compare the table of RFC 3629 with.
static size_t encode(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

static void test_utf8_of_every_code_point(void **state)
{
	for (uint32_t c = 0; c < 0x120000; c++) {
		bool valid = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
		bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
			       (c | 1) == 0x200f || (c >= 0x2028 && c < 0x202f) ||
			       (c >= 0x2066 && c < 0x206a);
		char bytes[4];
		size_t len = encode(c, bytes);

		assert_int_equal(text_utf8(bytes, len), valid ? len : 0);
		assert_int_equal(text_code_point(bytes, len), valid ? c : 0);
		assert_int_equal(text_shown(bytes, len), valid && !control ? len : 0);
		for (size_t cut = 0; cut < len; cut++)
			assert_int_equal(text_utf8(bytes, cut), 0);
	}
}

static void test_utf8_refuses(void **state)
{
	static const char *const bad[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"\xfe\x80\x80\x80\x80",
		"\xe2\x82"
		"A",
		"\xc3"
		"A",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(text_utf8(bad[i], strlen(bad[i])), 0);
}

static void test_shown(void **state)
{
	static const char raw[] = "a\tb\033[31mc\0d\x7f\xc2\x9b\xff\xc3\xa9\r\n";
	CLEANUP(text_free) struct text t = {0};

	text_add_shown(&t, raw, sizeof(raw) - 1);
	assert_string_equal(text_get(&t), "a\tb?[31mc?d????\xc3\xa9??");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_adds_in_order),
		cmocka_unit_test(test_bytes_of_zero_count),
		cmocka_unit_test(test_formats_of_any_length),
		cmocka_unit_test(test_grows_by_bytes),
		cmocka_unit_test(test_take_empties),
		cmocka_unit_test(test_utf8_of_every_code_point),
		cmocka_unit_test(test_utf8_refuses),
		cmocka_unit_test(test_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
