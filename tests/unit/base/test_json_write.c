// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of the writer in ctl/base/json.h: the same text as the tree of json.h gives.
#include "tests/unit/base/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/json.h"

static const char *const strings[] = {
	"",
	"plain",
	"a\"b\\c/\b\t\n\f\r\033\x1f\x7f",
	"gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8a",
	"\xff|\xc3|\xed\xa0\x80|\xc2\x9b|\xe2\x80\xae",
};
static const uint64_t numbers[] = {0, 9, 10, 4711, INT64_MAX, UINT64_MAX};

static char *printed(const struct json *j, bool pretty)
{
	struct text text = {0};

	json_print(j, pretty, &text);
	return text_take(&text);
}

static struct json *tree_of_values(void)
{
	struct json *list = json_array(), *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		json_append(list, json_string(strings[i]));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		json_append(list, json_u64(numbers[i]));
	json_append(list, json_array());
	json_append(list, json_nothing());
	json_set(object, "list", list);
	json_set(object, "yes", json_bool(true));
	json_set(object, "empty", json_object());
	json_set(object, strings[4], json_string(strings[4]));
	return object;
}

static void write_values(struct json_writer *w)
{
	json_write_object(w, NULL);
	json_write_array(w, "list");
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		json_write_string(w, NULL, strings[i]);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		json_write_u64(w, NULL, numbers[i]);
	json_write_array(w, NULL);
	json_write_end(w);
	json_write_nothing(w, NULL);
	json_write_end(w);
	json_write_bool(w, "yes", true);
	json_write_object(w, "empty");
	json_write_end(w);
	json_write_string(w, strings[4], strings[4]);
	json_write_end(w);
}

static void test_as_the_tree(void **state)
{
	CLEANUP_JSON struct json *tree = tree_of_values();

	for (int pretty = 0; pretty < 2; pretty++) {
		CLEANUP(json_writer_free) struct json_writer w = {.pretty = pretty};
		CLEANUP_FREE char *want = printed(tree, pretty);

		write_values(&w);
		assert_string_equal(text_get(&w.text), want);
	}
}

static void test_reals(void **state)
{
	static const double values[] = {0,     1,      10.5, 0.1234,  1234567.8,
					1e300, 0.0004, NAN,  INFINITY};
	CLEANUP(json_writer_free) struct json_writer w = {0}, rough = {0};
	CLEANUP_JSON struct json *j = NULL;

	json_write_array(&w, NULL);
	json_write_array(&rough, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (i != 5)
			json_write_real(&w, NULL, values[i]);
		json_write_rough(&rough, NULL, values[i]);
	}
	json_write_end(&w);
	json_write_end(&rough);
	assert_string_equal(text_get(&w.text), "[0,1,10.5,0.123,1234567.8,0,null,null]\n");
	assert_string_equal(text_get(&rough.text),
			    "[0,1,10.5,0.1234,1.235e+06,1e+300,0.0004,null,null]\n");
	w.text.len = 0;
	json_write_object(&w, NULL);
	json_write_real(&w, "huge", 1e15);
	json_write_u64(&w, "n", 7);
	json_write_end(&w);
	j = json_parse(w.text.at, w.text.len, NULL, 0);
	assert_true(json_get_real(j, "huge") == 1e15 && json_get_real(j, "n") == 7.0);
	assert_true(json_get_real(j, "none") == 0.0);
}

// The caller takes parts away between values.
static void test_in_parts(void **state)
{
	CLEANUP(json_writer_free) struct json_writer w = {0};

	json_write_array(&w, NULL);
	json_write_u64(&w, NULL, 1);
	assert_string_equal(text_get(&w.text), "[1");
	w.text.len = 0;
	json_write_u64(&w, NULL, 2);
	json_write_end(&w);
	assert_string_equal(text_get(&w.text), ",2]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_tree),
		cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_reals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
