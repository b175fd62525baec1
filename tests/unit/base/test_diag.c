// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/diag.c; drawings are compared whole.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag.h"
#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

static char *print(const struct diag *d, bool color)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	diag_print(d, f, color);
	fclose(f);
	assert_int_equal(strlen(text), len);
	return mem_strdup(text);
}

static void assert_prints(const struct diag *d, const char *want)
{
	CLEANUP_FREE char *text = print(d, false);

	assert_string_equal(text, want);
}

static size_t count_lines(const char *text, const char *with)
{
	size_t n = 0;

	for (; (text = strstr(text, with)); text += strlen(with))
		n++;
	return n;
}

static struct diag_at at(const struct diag_file *file, size_t offset, size_t len)
{
	return (struct diag_at){file, (uint32_t)offset, (uint32_t)len};
}

// The place of `word` in the file.
static struct diag_at at_word(const struct diag_file *file, const char *word)
{
	const char *found = strstr(file->text, word);

	assert_non_null(found);
	return at(file, (size_t)(found - file->text), strlen(word));
}

static const struct diag_file *add_file(struct diag *d, const char *name, const char *text)
{
	return diag_add_file(d, name, text, strlen(text));
}

// One error "m" at a place of a text, compared without its first line.
static void assert_draws(const char *text, size_t len, size_t offset, size_t span, const char *hint,
			 const char *want)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *file = diag_add_file(d, "f", text, len);
	CLEANUP_FREE char *got = NULL;

	diag_error(d, at(file, offset, span), hint, "m");
	got = print(d, false);
	assert_string_equal(strchr(got, '\n') + 1, want);
}

static const char edge[] = "interface eth0\n"
			   "\n"
			   "default pass\n"
			   "           drop from 10.0.0.5/8\n"
			   "           drop from @bgoons\n";

static void test_golden(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "edge.weir", edge);

	diag_error(d, at_word(f, "@bgoons"), NULL, "unknown set '%s', did you mean '@bogons' (%s)?",
		   "@bgoons", diag_place(d, at_word(f, "default"), false));
	diag_error(d, at_word(f, "10.0.0.5/8"),
		   "write 10.0.0.0/8 for the network or 10.0.0.5 for the host",
		   "'%s' has host bits set", "10.0.0.5/8");
	diag_warning(d, at_word(f, "eth0"), NULL, "no interface is up");
	assert_prints(
		d,
		"edge.weir:1:11: warning: no interface is up\n"
		"    1 | interface eth0\n"
		"      |           ^~~~\n"
		"edge.weir:4:22: error: '10.0.0.5/8' has host bits set\n"
		"    4 |            drop from 10.0.0.5/8\n"
		"      |                      ^~~~~~~~~~ write 10.0.0.0/8 for the network or 10.0.0.5"
		" for the host\n"
		"edge.weir:5:22: error: unknown set '@bgoons', did you mean '@bogons' "
		"(edge.weir:3)?\n"
		"    5 |            drop from @bgoons\n"
		"      |                      ^~~~~~~\n");
	assert_int_equal(diag_errors(d), 2);
}

static void test_color(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "a", "x\n");
	CLEANUP_FREE char *got = NULL;

	diag_error(d, at(f, 0, 1), "hint", "bad");
	diag_warning(d, at(f, 0, 1), NULL, "odd");
	diag_error(d, at(NULL, 0, 0), "hint", "none");
	got = print(d, true);
	assert_string_equal(got, "\033[1ma:1:1:\033[0m \033[1;31merror:\033[0m bad\n"
				 "    1 | x\n"
				 "      | \033[1;32m^\033[0m hint\n"
				 "\033[1ma:1:1:\033[0m \033[1;35mwarning:\033[0m odd\n"
				 "    1 | x\n"
				 "      | \033[1;32m^\033[0m\n"
				 "\033[1mweir:\033[0m \033[1;31merror:\033[0m none (hint)\n");
}

static void test_nothing(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new(), *none = NULL;

	assert_prints(d, "");
	assert_int_equal(diag_errors(d), 0);
}

static void test_order_and_no_place(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *a = add_file(d, "b-name", "one\ntwo\n");
	const struct diag_file *b = add_file(d, "a-name", "three\n");

	diag_error(d, at(NULL, 9, 9), NULL, "nowhere 1");
	diag_warning(d, at(b, 0, 5), NULL, "in b");
	diag_error(d, at(NULL, 0, 0), "a hint", "nowhere 2");
	diag_error(d, at(a, 4, 3), NULL, "second at two");
	diag_error(d, at(a, 0, 3), NULL, "at one");
	diag_warning(d, at(a, 4, 1), NULL, "third at two");
	assert_prints(d, "b-name:1:1: error: at one\n"
			 "    1 | one\n"
			 "      | ^~~\n"
			 "b-name:2:1: error: second at two\n"
			 "    2 | two\n"
			 "      | ^~~\n"
			 "b-name:2:1: warning: third at two\n"
			 "    2 | two\n"
			 "      | ^\n"
			 "a-name:1:1: warning: in b\n"
			 "    1 | three\n"
			 "      | ^~~~~\n"
			 "weir: error: nowhere 1\n"
			 "weir: error: nowhere 2 (a hint)\n");
}

static void test_each_once(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "f", "x y\n");
	CLEANUP_FREE char *got = NULL;

	for (int i = 0; i < 3; i++) {
		diag_error(d, at(f, 0, 1), NULL, "same");
		diag_error(d, at(NULL, (size_t)i, 0), NULL, "placeless");
	}
	diag_error(d, at(f, 2, 1), NULL, "same");
	diag_warning(d, at(f, 0, 1), NULL, "same");
	diag_warning(d, at(f, 0, 1), NULL, "same");
	assert_int_equal(diag_errors(d), 3);
	got = print(d, false);
	assert_int_equal(count_lines(got, "warning: same"), 1);
}

static void test_copies_what_it_gets(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	char name[] = "name", text[] = "text\n", hint[] = "hint";
	const struct diag_file *f = diag_add_file(d, name, text, 5);

	diag_error(d, at(f, 0, 4), hint, "%s", text);
	memset(name, '!', 4);
	memset(text, '!', 5);
	memset(hint, '!', 4);
	assert_prints(d, "name:1:1: error: text?\n"
			 "    1 | text\n"
			 "      | ^~~~ hint\n");
	assert_int_equal(f->text[f->len], '\0');
}

// A flood of warnings must not hide an error, and every one is counted.
static void test_flood(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "f", "x\n");
	CLEANUP_FREE char *got = NULL;

	for (int i = 0; i < 100000; i++)
		diag_warning(d, at(f, 0, 1), NULL, "w %d", i);
	for (int i = 0; i < 201; i++)
		diag_error(d, at(f, 0, 1), NULL, "e %d", i);
	diag_error(d, at(f, 0, 1), NULL, "e %d", 7); // known already
	assert_int_equal(diag_errors(d), 201);
	got = print(d, false);
	assert_int_equal(count_lines(got, "error: e "), 200);
	assert_int_equal(count_lines(got, "warning: w "), 200);
	assert_non_null(strstr(got, "\nweir: 1 more error is not shown\n"
				    "weir: 99800 more warnings are not shown\n"));
}

// A million places in a file of a million lines: must not read the file for each.
static void test_places_of_a_large_file(void **state)
{
	enum { LINES = 1000000 };
	CLEANUP_DIAG struct diag *d = diag_new();
	CLEANUP_FREE char *text = mem_zalloc(LINES, 2);
	const struct diag_file *f;

	for (size_t i = 0; i < LINES; i++)
		memcpy(text + 2 * i, "x\n", 2);
	f = diag_add_file(d, "big", text, (size_t)LINES * 2);
	for (size_t i = 0; i < LINES; i++)
		assert_int_equal(diag_line(at(f, 2 * i + 1, 0)), i + 1);
	assert_string_equal(diag_place(d, at(f, 2 * LINES - 2, 1), true), "big:1000000:1");
	diag_error(d, at(f, 2 * LINES - 2, 1), NULL, "m");
	assert_prints(d, "big:1000000:1: error: m\n"
			 "1000000 | x\n"
			 "        | ^\n");
}

static void test_place(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "f", "ab\n\n\tcd");
	const char *first = diag_place(d, at(f, 0, 2), false);

	assert_string_equal(diag_place(d, at(f, 1, 1), true), "f:1:2");
	assert_string_equal(diag_place(d, at(f, 2, 1), true), "f:1:3");
	assert_string_equal(diag_place(d, at(f, 3, 1), true), "f:2:1");
	assert_string_equal(diag_place(d, at(f, 5, 1), true), "f:3:2");
	assert_string_equal(diag_place(d, at(f, 7, 0), true), "f:3:4");
	assert_string_equal(diag_place(d, at(f, 99, 0), true), "f:3:4");
	assert_string_equal(diag_place(d, at(NULL, 0, 0), true), "");
	assert_string_equal(first, "f:1");
	assert_int_equal(diag_line(at(f, 4, 0)), 3);
	assert_int_equal(diag_line(at(NULL, 4, 0)), 0);
}

static void test_draw_ends_of_file(void **state)
{
	assert_draws("", 0, 0, 0, NULL,
		     "    1 |\n"
		     "      | ^\n");
	assert_draws("", 0, 99, 99, "h",
		     "    1 |\n"
		     "      | ^ h\n");
	assert_draws("abc", 3, 3, 0, NULL,
		     "    1 | abc\n"
		     "      |    ^\n");
	assert_draws("abc\n", 4, 3, 1, NULL,
		     "    1 | abc\n"
		     "      |    ^\n");
	assert_draws("abc\n", 4, 4, 0, NULL,
		     "    2 |\n"
		     "      | ^\n");
	assert_draws("abc\r\n", 5, 3, 2, NULL,
		     "    1 | abc\n"
		     "      |    ^\n");
	assert_draws("\r\n", 2, 1, 1, "h",
		     "    1 |\n"
		     "      | ^ h\n");
	assert_draws("a\n\nb", 4, 2, 0, NULL,
		     "    2 |\n"
		     "      | ^\n");
}

static void test_draw_no_length(void **state)
{
	assert_draws("one two\n", 8, 4, 0, "h",
		     "    1 | one two\n"
		     "      |     ^ h\n");
	assert_draws("one two\n", 8, 0, 0, NULL,
		     "    1 | one two\n"
		     "      | ^\n");
}

static void test_draw_over_lines(void **state)
{
	assert_draws("one two\nthree\n", 14, 4, 9, NULL,
		     "    1 | one two\n"
		     "      |     ^~~\n");
	assert_draws("one \\\r\ntwo", 10, 4, 6, NULL,
		     "    1 | one \\\n"
		     "      |     ^\n");
}

static void test_draw_tabs(void **state)
{
	assert_draws("\tdrop\tx", 7, 6, 1, NULL,
		     "    1 |         drop    x\n"
		     "      |                 ^\n");
	assert_draws("a\tb", 3, 1, 1, NULL,
		     "    1 | a       b\n"
		     "      |  ^~~~~~~\n");
	assert_draws("1234567\tb", 9, 8, 1, NULL,
		     "    1 | 1234567 b\n"
		     "      |         ^\n");
	assert_draws("drop from\t", 10, 5, 4, "h",
		     "    1 | drop from\n"
		     "      |      ^~~~ h\n");
}

static void test_draw_utf8(void **state)
{
	// Columns in the heading count bytes, carets code points.
	assert_draws("\xc3\xbc\xc3\x9f \xe2\x82\xac x", 10, 9, 1, NULL,
		     "    1 | \xc3\xbc\xc3\x9f \xe2\x82\xac x\n"
		     "      |      ^\n");
	assert_draws("\xf0\x9f\x8c\x8a\xf0\x9f\x8c\x8a", 8, 4, 4, NULL,
		     "    1 | \xf0\x9f\x8c\x8a\xf0\x9f\x8c\x8a\n"
		     "      |  ^\n");
	// An offset inside a code point means that code point.
	assert_draws("\xe2\x82\xac\xe2\x82\xac", 6, 4, 1, NULL,
		     "    1 | \xe2\x82\xac\xe2\x82\xac\n"
		     "      |  ^\n");
	assert_draws("a\xff\xc3", 3, 2, 1, NULL,
		     "    1 | a??\n"
		     "      |   ^\n");
}

static void test_draw_control_characters(void **state)
{
	assert_draws("a\0b\033[2Jc\x7f\xc2\x9b"
		     "d\r",
		     12, 11, 1, NULL,
		     "    1 | a?b?[2Jc??d\n"
		     "      |           ^\n");
	assert_draws("a\rb\n", 4, 2, 1, NULL,
		     "    1 | a?b\n"
		     "      |   ^\n");
	assert_draws("\0", 1, 0, 1, NULL,
		     "    1 | ?\n"
		     "      | ^\n");
}

static void test_messages_do_not_steer_the_terminal(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "f\033[1m", "x\n");

	diag_error(d, at(f, 0, 1), "h\n\a", "m\033\n\xff");
	diag_error(d, at(NULL, 0, 0), "h\r", "m");
	assert_prints(d, "f?[1m:1:1: error: m???\n"
			 "    1 | x\n"
			 "      | ^ h??\n"
			 "weir: error: m (h?)\n");
}

// A line of 300 columns "0123456789012…"; the part that is drawn for a caret at `column`.
static void assert_window(size_t column, size_t span, size_t from, size_t to)
{
	char line[300];
	CLEANUP(text_free) struct text want = {0};
	size_t end = column + span;

	for (size_t i = 0; i < sizeof(line); i++)
		line[i] = (char)('0' + i % 10);
	text_add(&want, "    1 | ");
	for (size_t i = from; i < to; i++) {
		if ((i == from && from > 0) || (i == to - 1 && to < sizeof(line)))
			text_add(&want, "\xe2\x80\xa6");
		else
			text_addc(&want, line[i]);
	}
	text_addf(&want, "\n      | %*s^", (int)(column - from), "");
	if (end > to)
		end = to;
	for (size_t i = column + 1; i < end; i++)
		text_addc(&want, '~');
	text_addc(&want, '\n');
	assert_draws(line, sizeof(line), column, span, NULL, text_get(&want));
}

static void test_draw_window(void **state)
{
	assert_window(0, 1, 0, 100);
	assert_window(0, 300, 0, 100);
	assert_window(60, 5, 0, 100);
	assert_window(61, 5, 21, 121);
	assert_window(150, 10, 110, 210);
	assert_window(150, 150, 110, 210);
	assert_window(240, 1, 200, 300);
	assert_window(241, 1, 200, 300);
	assert_window(299, 1, 200, 300);
	assert_window(300, 0, 200, 300);
}

static void test_draw_window_edges(void **state)
{
	char line[102];

	memset(line, 'x', sizeof(line));
	CLEANUP_FREE char *whole = mem_printf("    1 | %.100s\n      | ^\n", line);
	CLEANUP_FREE char *cut = mem_printf("    1 | %.99s\xe2\x80\xa6\n      | ^\n", line);

	assert_draws(line, 100, 0, 1, NULL, whole);
	assert_draws(line, 101, 0, 1, NULL, cut);
}

static size_t columns_of(const char *line)
{
	size_t n = 0;

	for (; *line && *line != '\n'; line++)
		n += (*line & 0xc0) != 0x80;
	return n;
}

// Lines of megabytes, of any bytes, with the caret anywhere: two lines of at most 108 columns.
static void test_draw_monsters(void **state)
{
	enum { SIZE = 1 << 20 };
	CLEANUP_FREE char *text = mem_zalloc(SIZE, 1);
	static const char pieces[] = "ab\t\t\xc3\xbc\xe2\x82\xac\xf0\x9f\x8c\x8a\xff\033";
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f;
	uint64_t random = 31;

	for (size_t i = 0; i < SIZE; i++)
		text[i] = pieces[unit_below(&random, sizeof(pieces))]; // with NULs
	f = diag_add_file(d, "f", text, SIZE);
	for (int i = 0; i < 200; i++)
		diag_error(d, at(f, unit_below(&random, SIZE + 2), unit_below(&random, 3000)), NULL,
			   "%d", i);
	diag_error(d, at(f, 0, SIZE), NULL, "all");
	CLEANUP_FREE char *got = print(d, false);
	const char *line = got;

	for (int i = 0; i < 600; i++) {
		size_t columns = columns_of(line);

		assert_true(i % 3 == 0 || columns <= 8 + 100 + 1);
		if (i % 3 == 2)
			assert_non_null(memchr(line, '^', columns));
		line = strchr(line, '\n') + 1;
	}
	assert_string_equal(line, "weir: 1 more error is not shown\n");
}

// The caret is below its character: checked with a marker, column by column.
static void test_caret_is_under_its_character(void **state)
{
	static const char *const pieces[] = {"a", "\t", "\xc3\xbc", "\xe2\x82\xac", "\x01", "\xff"};
	uint64_t random = 37;

	for (int i = 0; i < 3000; i++) {
		CLEANUP_DIAG struct diag *d = diag_new();
		CLEANUP(text_free) struct text line = {0};
		unsigned before = unit_below(&random, i % 10 ? 60 : 2000);
		size_t place;

		for (unsigned n = 0; n < before; n++)
			text_add(&line, pieces[unit_below(&random, ARRAY_SIZE(pieces))]);
		place = line.len;
		text_addc(&line, '#');
		for (unsigned n = unit_below(&random, 400); n; n--)
			text_add(&line, pieces[unit_below(&random, ARRAY_SIZE(pieces))]);
		diag_error(d, at(diag_add_file(d, "f", line.at, line.len), place, 1), NULL, "m");
		CLEANUP_FREE char *got = print(d, false);
		char *shown = strchr(got, '\n') + 1, *carets = strchr(shown, '\n') + 1;
		char *marker = strchr(shown, '#'), *caret = strchr(carets, '^');

		assert_true(marker && marker < carets && caret);
		*marker = *caret = '\0';
		assert_int_equal(columns_of(shown), columns_of(carets));
	}
}

struct visited {
	struct text seen;
};

static void visit(void *ctx, enum diag_level level, const char *file, unsigned line,
		  unsigned column, const char *message, const char *hint)
{
	struct visited *v = ctx;

	text_addf(&v->seen, "%d %s %u %u %s %s\n", level, file ? file : "-", line, column, message,
		  hint ? hint : "-");
}

static void test_each(void **state)
{
	CLEANUP_DIAG struct diag *d = diag_new();
	const struct diag_file *f = add_file(d, "f", "one\ntwo\n");
	struct visited v = {0};

	diag_error(d, at(NULL, 0, 0), NULL, "last");
	diag_warning(d, at(f, 5, 1), "h\n", "second \033");
	diag_error(d, at(f, 0, 1), NULL, "first");
	diag_each(d, visit, &v);
	assert_string_equal(text_get(&v.seen), "0 f 1 1 first -\n"
					       "1 f 2 2 second \033 h\n\n"
					       "0 - 0 0 last -\n");
	text_free(&v.seen);
}

static void assert_nearest(const char *word, const char *want)
{
	static const char *const candidates[] = {
		"interface", "define", "set",         "service", "default",
		"fragments", "drop",   "pass",        "reject",  "count",
		"port",      "proto",  "probability", "a",       "",
	};
	const char *got = diag_nearest(word, candidates, ARRAY_SIZE(candidates));

	if (!want != !got || (want && strcmp(want, got) != 0))
		fail_msg("'%s': '%s', not '%s'", word, got ? got : "-", want ? want : "-");
}

static void test_nearest(void **state)
{
	assert_nearest("drpo", "drop"); // a transposition is one edit
	assert_nearest("dropp", "drop");
	assert_nearest("rop", "drop");
	assert_nearest("drxp", "drop");
	assert_nearest("DROP", "drop");
	assert_nearest("Pass", "pass");
	assert_nearest("prot", "port"); // the first of equally near ones
	assert_nearest("protoc", "proto");
	assert_nearest("interfcae", "interface");
	assert_nearest("intrfce", "interface");
	assert_nearest("intrfc", NULL); // 3 edits, 6 letters
	assert_nearest("servcies", "service");
	assert_nearest("probablity", "probability");
	assert_nearest("probbility", "probability");
	assert_nearest("prbblity", NULL);
	assert_nearest("deny", NULL);
	assert_nearest("opdr", NULL);
	assert_nearest("x", NULL); // not "a": nothing in common
	assert_nearest("ax", "a");
	assert_nearest("", NULL);
	assert_nearest("drop", "drop");
	assert_null(diag_nearest("x", NULL, 0));
}

// Edits between two words by the recursive definition.
static unsigned edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned n, other;

	if (!a_len || !b_len)
		return (unsigned)(a_len + b_len);
	n = edits(a, a_len - 1, b, b_len - 1) + (a[a_len - 1] != b[b_len - 1]);
	other = edits(a, a_len - 1, b, b_len) + 1;
	n = n < other ? n : other;
	other = edits(a, a_len, b, b_len - 1) + 1;
	n = n < other ? n : other;
	if (a_len < 2 || b_len < 2 || a[a_len - 1] != b[b_len - 2] || a[a_len - 2] != b[b_len - 1])
		return n;
	other = edits(a, a_len - 2, b, b_len - 2) + 1;
	return n < other ? n : other;
}

static void random_word(uint64_t *random, char word[8])
{
	size_t len = unit_below(random, 8);

	for (size_t i = 0; i < len; i++)
		word[i] = (char)('a' + unit_below(random, 3));
	word[len] = '\0';
}

static void test_nearest_against_the_definition(void **state)
{
	uint64_t random = 41;

	for (int i = 0; i < 3000; i++) {
		char word[8], other[8];
		const char *candidates[] = {other};
		size_t len, other_len;
		unsigned n;

		random_word(&random, word);
		random_word(&random, other);
		len = strlen(word);
		other_len = strlen(other);
		n = edits(word, len, other, other_len);
		bool want =
			n <= (len >= 6 ? len / 3 : 1) && n < (len > other_len ? len : other_len);

		if ((diag_nearest(word, candidates, 1) != NULL) != want)
			fail_msg("'%s' and '%s', %u edits", word, other, n);
	}
}

static void test_nearest_takes_the_closer(void **state)
{
	static const char *const sets[] = {"bogons4x", "bogons46", "bogons4", "bogon"};

	assert_string_equal(diag_nearest("bgoons4", sets, 4), "bogons4");
	assert_string_equal(diag_nearest("bogons4", sets, 4), "bogons4");
	assert_string_equal(diag_nearest("bogonss", sets, 4), "bogons4");
	assert_string_equal(diag_nearest("bogosn4x", sets, 1), "bogons4x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_color),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_order_and_no_place),
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_copies_what_it_gets),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_places_of_a_large_file),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_draw_ends_of_file),
		cmocka_unit_test(test_draw_no_length),
		cmocka_unit_test(test_draw_over_lines),
		cmocka_unit_test(test_draw_tabs),
		cmocka_unit_test(test_draw_utf8),
		cmocka_unit_test(test_draw_control_characters),
		cmocka_unit_test(test_messages_do_not_steer_the_terminal),
		cmocka_unit_test(test_draw_window),
		cmocka_unit_test(test_draw_window_edges),
		cmocka_unit_test(test_draw_monsters),
		cmocka_unit_test(test_caret_is_under_its_character),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_nearest_against_the_definition),
		cmocka_unit_test(test_nearest_takes_the_closer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
