// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/json.c.
#include "tests/unit/base/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/json.h"

static char *print(const struct json *j, bool pretty)
{
	struct text text = {0};

	json_print(j, pretty, &text);
	return text_take(&text);
}

// Prints j, compares, and frees it.
static void assert_prints(struct json *j, const char *want)
{
	CLEANUP_FREE char *text = print(j, false);

	assert_string_equal(text, want);
	json_free(j);
}

static void test_values(void **state)
{
	assert_prints(json_object(), "{}\n");
	assert_prints(json_array(), "[]\n");
	assert_prints(json_nothing(), "null\n");
	assert_prints(json_bool(true), "true\n");
	assert_prints(json_bool(false), "false\n");
	assert_prints(json_u64(0), "0\n");
	assert_prints(json_u64(INT64_MAX), "9223372036854775807\n");
	assert_prints(json_u64(UINT64_MAX), "9223372036854775807\n");
	assert_prints(json_i64(INT64_MIN), "-9223372036854775808\n");
	assert_prints(json_real(1.1), "1.1\n");
	assert_prints(json_real(0.3), "0.3\n");
	assert_prints(json_real(NAN), "null\n");
	assert_prints(json_real(-INFINITY), "null\n");
}

static void test_strings(void **state)
{
	assert_prints(json_string(""), "\"\"\n");
	assert_prints(json_string("a\"b\\c\n\033"), "\"a\\\"b\\\\c\\n\\u001B\"\n");
	assert_prints(json_string("gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8a"),
		      "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8a\"\n");
	assert_prints(json_string("\xff|\xc3|\xed\xa0\x80"),
		      "\"\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n");
}

static void test_keeps_the_order(void **state)
{
	struct json *j = json_object(), *list = json_array();

	json_set(j, "z", json_u64(1));
	json_set(j, "a", list);
	json_append(list, json_string("x")); // a child may still be filled
	json_append(list, json_bool(true));
	json_set(j, "m", json_u64(2));
	json_set(j, "z", json_u64(3)); // replaced in place
	json_set(j, "bad \xff key", json_nothing());
	assert_prints(j, "{\"z\":3,\"a\":[\"x\",true],\"m\":2,\"bad \xef\xbf\xbd key\":null}\n");
}

static void test_no_child_is_null(void **state)
{
	struct json *j = json_object(), *list = json_array();

	json_set(j, "k", NULL);
	json_append(list, NULL);
	json_set(j, "l", list);
	assert_prints(j, "{\"k\":null,\"l\":[null]}\n");
}

// U+009B begins a sequence on some terminals, U+202E reverses a line: both are read back unchanged.
static void test_steers_no_terminal(void **state)
{
	static const char note[] = "a\xc2\x9b"
				   "31m\x7f\xe2\x80\xae\xc3\xa9";
	struct json *j = json_object();

	json_set(j, note, json_string(note));
	assert_prints(
		j,
		"{\"a\\u009b31m\\u007f\\u202e\xc3\xa9\":\"a\\u009b31m\\u007f\\u202e\xc3\xa9\"}\n");
}

static void test_pretty(void **state)
{
	CLEANUP_JSON struct json *j = json_object();
	CLEANUP_FREE char *text = NULL;

	json_set(j, "a", json_u64(1));
	json_set(j, "b", json_array());
	text = print(j, true);
	assert_string_equal(text, "{\n  \"a\": 1,\n  \"b\": []\n}\n");
}

static void test_print_adds(void **state)
{
	CLEANUP_JSON struct json *j = json_object();
	CLEANUP_TEXT struct text text = {0};

	text_add(&text, "before ");
	json_print(j, false, &text);
	text_add(&text, "after");
	assert_string_equal(text_get(&text), "before {}\nafter");
}

static void test_copies(void **state)
{
	CLEANUP_JSON struct json *j = json_object();
	CLEANUP_FREE char *there = NULL, *absent = NULL, *number = NULL;

	json_set(j, "s", json_string("x"));
	json_set(j, "n", json_u64(1));
	there = json_get_copy(j, "s");
	absent = json_get_copy(j, "t");
	number = json_get_copy(j, "n");
	assert_string_equal(there, "x");
	assert_string_equal(absent, "");
	assert_string_equal(number, "");
}

static void test_reading(void **state)
{
	static const char text[] =
		"{\"s\":\"x\",\"n\":7,\"neg\":-1,\"l\":[1,{\"k\":\"v\"}],\"z\":null}";
	CLEANUP_JSON struct json *j = json_parse(text, sizeof(text) - 1, NULL, 0);
	struct json *list;

	assert_non_null(j);
	assert_string_equal(json_get_string(j, "s"), "x");
	assert_null(json_get_string(j, "n"));
	assert_null(json_get_string(j, "absent"));
	assert_int_equal(json_get_u64(j, "n"), 7);
	assert_int_equal(json_get_u64(j, "neg"), 0);
	assert_int_equal(json_get_u64(j, "s"), 0);
	list = json_get(j, "l");
	assert_int_equal(json_length(list), 2);
	assert_string_equal(json_get_string(json_at(list, 1), "k"), "v");
	assert_null(json_at(list, 2));
	assert_int_equal(json_length(j), 0);
	assert_null(json_get(list, "k"));
	assert_null(json_get(NULL, "k"));
	assert_null(json_at(NULL, 0));
	assert_int_equal(json_length(NULL), 0);
	assert_null(json_get_string(NULL, "k"));
}

static void test_parse_refuses(void **state)
{
	static const char *const bad[] = {
		"", "{", "{}x", "{\"a\":1,\"a\":2}", "[1,]", "'x'", "{\"a\":\"\xff\"}", "01", "nan",
	};
	char error[100] = "untouched";

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		error[0] = '\0';
		assert_null(json_parse(bad[i], strlen(bad[i]), error, sizeof(error)));
		assert_int_equal(strncmp(error, "line ", 5), 0);
		assert_null(json_parse(bad[i], strlen(bad[i]), NULL, 0));
	}
	assert_null(json_parse("{\n\n!", 4, error, sizeof(error)));
	assert_int_equal(strncmp(error, "line 3: ", 8), 0);
	assert_null(json_parse("{", 1, error, 5));
	assert_string_equal(error, "line");
}

static void test_round_trip(void **state)
{
	CLEANUP_JSON struct json *j = json_object(), *back = NULL;
	CLEANUP_FREE char *text = NULL, *again = NULL;

	json_set(j, "text", json_string("\t\"\xc3\xa9\""));
	json_set(j, "n", json_u64(1u << 31));
	text = print(j, true);
	back = json_parse(text, strlen(text), NULL, 0);
	assert_non_null(back);
	again = print(back, true);
	assert_string_equal(text, again);
}

static void test_free_nothing(void **state)
{
	CLEANUP_JSON struct json *none = NULL;

	json_free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),          cmocka_unit_test(test_strings),
		cmocka_unit_test(test_keeps_the_order), cmocka_unit_test(test_no_child_is_null),
		cmocka_unit_test(test_pretty),          cmocka_unit_test(test_steers_no_terminal),
		cmocka_unit_test(test_print_adds),      cmocka_unit_test(test_copies),
		cmocka_unit_test(test_reading),         cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_free_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
