// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/out.h: text and JSON from the same calls, alignment, escaping, one
// document.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/json.h"
#include "ctl/cmd/out.h"

enum form { TEXT, JSON, PRETTY, COLOR };

// Takes the time out of each document, which is the first key after the version.
static void take_times(char *text)
{
	const char *const keys[] = {",\"time\":\"", ",\n  \"time\": \""};

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		for (char *at = text; (at = strstr(at, keys[k]));) {
			char *end = strchr(at + strlen(keys[k]), '"') + 1;

			assert_memory_equal(at - 1, "1", 1);
			assert_int_equal((size_t)(end - at),
					 strlen(keys[k]) +
						 strlen("2026-11-24T02:15:03.000+01:00\""));
			memmove(at, end, strlen(end) + 1);
		}
}

// The output of `say` and out_finish, without times.
static char *printed(enum form form, void (*say)(struct out *o), int want_code)
{
	char path[] = "/tmp/weir-out-XXXXXX", *text = mem_zalloc(1 << 18, 1);
	struct out *o = out_new(form == JSON || form == PRETTY, form == PRETTY, form == COLOR);
	int screen, file = mkstemp(path), code;
	ssize_t len;

	assert_true(file >= 0);
	unlink(path);
	fflush(stdout);
	screen = dup(STDOUT_FILENO);
	dup2(file, STDOUT_FILENO);
	say(o);
	code = out_finish(o);
	fflush(stdout);
	dup2(screen, STDOUT_FILENO);
	close(screen);
	out_free(o);
	len = pread(file, text, (1 << 18) - 1, 0);
	close(file);
	assert_true(len >= 0);
	assert_int_equal(code, want_code);
	take_times(text);
	return text;
}

static void assert_prints(enum form form, void (*say)(struct out *o), const char *want)
{
	CLEANUP_FREE char *text = printed(form, say, 0);

	assert_string_equal(text, want);
}

static void say_nothing(struct out *o)
{
}

static void test_nothing(void **state)
{
	assert_prints(TEXT, say_nothing, "");
	assert_prints(JSON, say_nothing, "{\"schema\":1}\n");
	assert_prints(PRETTY, say_nothing, "{\n  \"schema\": 1\n}\n");
}

static void say_values(struct out *o)
{
	out_set_string(o, "name", "a \"b\" \\ \n\033[2J\xff");
	out_set_string(o, "none", NULL);
	out_set_u64(o, "most", UINT64_MAX);
	out_set_bool(o, "yes", true);
	out_set_bool(o, "no", false);
	out_line(o, "%s has %d", "prose", 2);
	out_object(o, "inner");
	out_array(o, "words");
	out_item_string(o, "one");
	out_item_u64(o, 0);
	out_object(o, NULL);
	out_set_u64(o, "deep", 1);
	out_end(o);
	out_end(o);
	out_end(o);
	out_set_u64(o, "after", 2);
}

// Data is JSON only, prose is text only.
static void test_values(void **state)
{
	assert_prints(TEXT, say_values, "prose has 2\n");
	assert_prints(
		JSON, say_values,
		"{\"schema\":1,\"name\":\"a \\\"b\\\" \\\\ \\n\\u001B[2J\xef\xbf\xbd\",\"none\":null,"
		"\"most\":9223372036854775807,\"yes\":true,\"no\":false,"
		"\"inner\":{\"words\":[\"one\",0,{\"deep\":1}]},\"after\":2}\n");
}

// Output of another process, also deeper than a document may be.
static void say_json(struct out *o)
{
	static const char text[] =
		"{\"s\":\"a\",\"n\":7,\"b\":true,\"z\":null,\"r\":1.5,\"m\":-1,\"l\":[1,{\"x\":[]}],"
		"\"deep\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}";
	CLEANUP_JSON struct json *value = json_parse(text, sizeof(text) - 1, NULL, 0);

	assert_non_null(value);
	out_set_json(o, "report", value);
	out_set_json(o, "nothing", NULL);
	out_set_u64(o, "after", 1);
}

static void test_json_of_others(void **state)
{
	assert_prints(TEXT, say_json, "");
	assert_prints(JSON, say_json,
		      "{\"schema\":1,\"report\":{\"s\":\"a\",\"n\":7,\"b\":true,\"z\":null,"
		      "\"l\":[1,{\"x\":[]}],\"deep\":[[[[[[[[[[[[[[]]]]]]]]]]]]]]},"
		      "\"nothing\":null,\"after\":1}\n");
}

static void say_table(struct out *o)
{
	out_table(o, "rows");
	out_row(o);
	out_cell(o, "name", "NAME", "a");
	out_cell_u64(o, "packets", "PACKETS", 1234567);
	out_cell_as(o, "left_s", "LEFT", "12m", 720);
	out_cell(o, "note", "NOTE", "");
	out_row(o);
	out_cell(o, "name", "NAME", "gr\xc3\xbc\xc3\x9f"); // four columns, six bytes
	out_cell_u64(o, "packets", "PACKETS", 0);
	out_cell(o, "note", "NOTE", "of the second");
	out_cell(o, "secret", NULL, "JSON alone");
	out_cell(o, NULL, "SCREEN", "text alone");
	out_table_end(o);
	out_line(o, "end");
	out_set_bool(o, "end", true);
}

static void test_table(void **state)
{
	assert_prints(JSON, say_table,
		      "{\"schema\":1,\"rows\":["
		      "{\"name\":\"a\",\"packets\":1234567,\"left_s\":720},"
		      "{\"name\":\"gr\xc3\xbc\xc3\x9f\",\"packets\":0,\"note\":\"of the second\","
		      "\"secret\":\"JSON alone\"}],\"end\":true}\n");
	assert_prints(TEXT, say_table,
		      "NAME    PACKETS  LEFT  NOTE           SCREEN\n"
		      "a     1,234,567   12m\n"
		      "gr\xc3\xbc\xc3\x9f          0        of the second  text alone\n"
		      "end\n");
}

#define LONG_ROWS 1201 // more than two blocks

static void say_long_table(struct out *o)
{
	out_long_table(o, "rows");
	for (unsigned row = 0; row < LONG_ROWS; row++) {
		out_row(o);
		out_cell(o, "name", "NAME", row == LONG_ROWS - 1 ? "a longer name" : "a");
		out_cell_u64(o, "n", "N", row);
		out_cell(o, "note", "NOTE", row ? "" : "first");
	}
	out_table_end(o);
	out_set_bool(o, "end", true);
}

// One header and one document; a column grows with a later block, and is never cut.
static void test_long_table(void **state)
{
	CLEANUP_FREE char *text = printed(TEXT, say_long_table, 0);
	CLEANUP_FREE char *json = printed(JSON, say_long_table, 0);
	CLEANUP_JSON struct json *j = json_parse(json, strlen(json), NULL, 0);
	size_t lines = 0;

	assert_non_null(strstr(text, "NAME    N  NOTE\na       0  first\na       1\n"));
	assert_non_null(strstr(text, "\na     999\na              1,000\n"));
	assert_non_null(strstr(text, "\na longer name  1,200\n"));
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, LONG_ROWS + 1);
	assert_non_null(j);
	assert_int_equal(json_length(json_get(j, "rows")), LONG_ROWS);
	assert_int_equal(json_get_u64(json_at(json_get(j, "rows"), 1000), "n"), 1000);
	assert_non_null(json_get(j, "end"));
}

static void say_long_error(struct out *o)
{
	say_long_table(o);
	out_long_table(o, "more");
	out_row(o);
	out_cell_u64(o, "n", "N", 1);
	out_error(o, "no", "", "");
}

// Output before the error remains a part of the document.
static void test_error_after_a_long_table(void **state)
{
	CLEANUP_FREE char *text = printed(JSON, say_long_error, 0);
	CLEANUP_JSON struct json *j = json_parse(text, strlen(text), NULL, 0);

	assert_int_equal(json_length(json_get(j, "rows")), LONG_ROWS);
	assert_int_equal(json_length(json_get(j, "more")), 1);
	assert_string_equal(json_get_string(json_get(j, "error"), "text"), "no");
}

static void say_empty_tables(struct out *o)
{
	out_table(o, "none");
	out_table_end(o);
	out_table(o, "bare");
	out_row(o);
	out_table_end(o);
}

static void test_empty_tables(void **state)
{
	assert_prints(TEXT, say_empty_tables, "");
	assert_prints(JSON, say_empty_tables, "{\"schema\":1,\"none\":[],\"bare\":[{}]}\n");
}

static void say_two_tables(struct out *o)
{
	for (int t = 0; t < 2; t++) {
		out_table(o, t ? "second" : "first");
		out_row(o);
		out_cell(o, "k", t ? "B" : "A LONG COLUMN", t ? "2" : "1");
		out_table_end(o);
	}
}

// Tables have separate columns.
static void test_two_tables(void **state)
{
	assert_prints(TEXT, say_two_tables, "A LONG COLUMN\n1\nB\n2\n");
	assert_prints(JSON, say_two_tables,
		      "{\"schema\":1,\"first\":[{\"k\":\"1\"}],\"second\":[{\"k\":\"2\"}]}\n");
}

static void say_hostile(struct out *o)
{
	static const char text[] = "\033]0;x\a\r\n\x7f\x9b\001\002\003";

	out_line(o, "<%s>", text);
	out_table(o, "t");
	out_row(o);
	out_cell(o, "k", "K", text);
	out_table_end(o);
}

// Foreign text neither controls the terminal nor begins a line.
static void test_foreign_text(void **state)
{
	CLEANUP_FREE char *text = printed(TEXT, say_hostile, 0);
	CLEANUP_FREE char *json = printed(JSON, say_hostile, 0);
	size_t lines = 0;

	for (const char *c = text; *c; c++) {
		lines += *c == '\n';
		assert_true(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
		assert_true((unsigned char)*c != 0x9b);
	}
	assert_int_equal(lines, 3);
	assert_string_equal(strchr(json, '\n'), "\n");
	for (const char *c = json; *c != '\n'; c++)
		assert_true((unsigned char)*c >= 0x20);
}

static void say_color(struct out *o)
{
	out_line(o, "%sbold%s %sred%s", out_bold(o), out_plain(o), out_red(o), out_plain(o));
}

static void test_color(void **state)
{
	CLEANUP_FREE char *color = printed(COLOR, say_color, 0);

	assert_string_equal(color, "\033[1mbold\033[0m \033[1;31mred\033[0m\n");
	assert_prints(TEXT, say_color, "bold red\n");
	assert_prints(JSON, say_color, "{\"schema\":1}\n");
}

static void test_width(void **state)
{
	assert_int_equal(out_width(""), 0);
	assert_int_equal(out_width("abc"), 3);
	assert_int_equal(out_width("gr\xc3\xbc\xc3\x9f"), 4);
	assert_int_equal(out_width("\xe2\x80\xa6"), 1);
}

static void say_error(struct out *o)
{
	out_set_string(o, "name", "x");
	out_object(o, "open");
	out_table(o, "half");
	out_row(o);
	out_cell(o, "k", "K", "1");
	out_error(o, "cannot open 'x': it does not exist", "", "ENOENT");
}

// An error closes open objects: one document, with the error at its top level.
static void test_error_in_the_middle(void **state)
{
	CLEANUP_FREE char *text = printed(JSON, say_error, 0);
	CLEANUP_JSON struct json *j = json_parse(text, strlen(text), NULL, 0);

	assert_non_null(j);
	assert_string_equal(json_get_string(json_get(j, "error"), "text"),
			    "cannot open 'x': it does not exist");
	assert_string_equal(json_get_string(json_get(j, "error"), "code"), "ENOENT");
	assert_non_null(json_get(json_get(j, "error"), "hint"));
	assert_null(json_get_string(json_get(j, "error"), "hint")); // null
	assert_string_equal(json_get_string(j, "name"), "x");
}

static void say_stream(struct out *o)
{
	for (unsigned n = 1; n <= 3; n++) {
		out_set_u64(o, "n", n);
		out_line(o, "line %u", n);
		out_next_document(o);
	}
}

static void say_stream_and_more(struct out *o)
{
	say_stream(o);
	out_set_bool(o, "last", true);
}

// One document a line, and no empty one at the end.
static void test_stream(void **state)
{
	assert_prints(JSON, say_stream,
		      "{\"schema\":1,\"n\":1}\n{\"schema\":1,\"n\":2}\n{\"schema\":1,\"n\":3}\n");
	assert_prints(JSON, say_stream_and_more,
		      "{\"schema\":1,\"n\":1}\n{\"schema\":1,\"n\":2}\n{\"schema\":1,\"n\":3}\n"
		      "{\"schema\":1,\"last\":true}\n");
	assert_prints(TEXT, say_stream, "line 1\nline 2\nline 3\n");
}

static void say_times(struct out *o)
{
	out_set_time(o, "epoch", 0);
	out_set_time(o, "then", 1790000000);
	out_set_time(o, "never", UINT64_MAX);
}

// RFC 3339 has a colon in the offset.
static void test_times(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	assert_prints(JSON, say_times,
		      "{\"schema\":1,\"epoch\":\"1970-01-01T00:00:00+00:00\","
		      "\"then\":\"2026-09-21T14:13:20+00:00\",\"never\":null}\n");
	setenv("TZ", "XYZ-05:30", 1);
	tzset();
	assert_prints(JSON, say_times,
		      "{\"schema\":1,\"epoch\":\"1970-01-01T05:30:00+05:30\","
		      "\"then\":\"2026-09-21T19:43:20+05:30\",\"never\":null}\n");
}

static void say_moment(struct out *o)
{
	out_set_moment(o, 1790000000007);
	out_set_u64(o, "n", 1);
	out_next_document(o);
	out_set_u64(o, "n", 2);
}

// A document has one time: the moment that it is about, else its own.
static void test_moment(void **state)
{
	CLEANUP_FREE char *text = NULL;
	struct out *o = out_new_document();

	setenv("TZ", "UTC", 1);
	tzset();
	out_set_moment(o, 1790000000007);
	out_set_u64(o, "n", 1);
	text = out_take_document(o);
	out_free(o);
	assert_string_equal(text,
			    "{\"schema\":1,\"time\":\"2026-09-21T14:13:20.007+00:00\",\"n\":1}\n");
	assert_prints(JSON, say_moment, "{\"schema\":1,\"n\":1}\n{\"schema\":1,\"n\":2}\n");
	assert_prints(TEXT, say_moment, "");
}

static void say_full(struct out *o)
{
	int full = open("/dev/full", O_WRONLY);

	dup2(full, STDOUT_FILENO);
	close(full);
	out_line(o, "lost");
	out_set_u64(o, "lost", 1);
}

// Output to a full disk is an error.
static void test_full_disk(void **state)
{
	free(printed(TEXT, say_full, -EIO));
	clearerr(stdout);
	free(printed(JSON, say_full, -EIO));
	clearerr(stdout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_json_of_others),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_long_table),
		cmocka_unit_test(test_error_after_a_long_table),
		cmocka_unit_test(test_empty_tables),
		cmocka_unit_test(test_two_tables),
		cmocka_unit_test(test_foreign_text),
		cmocka_unit_test(test_color),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_error_in_the_middle),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_moment),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
