// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/split.h.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/split.h"

// The words of a line, each in brackets.
static char *words_of(const char *line)
{
	CLEANUP_SPLIT struct split s = {0};
	char *text = mem_zalloc(1024, 1);

	assert_int_equal(split_line(line, strlen(line), &s, NULL), 0);
	vec_each (&s.words, word) {
		strncat(text, "[", 2);
		strncat(text, *word, 256);
		strncat(text, "]", 2);
	}
	return text;
}

static void test_words(void **state)
{
	static const struct {
		const char *line, *words;
	} lines[] = {
		{"", ""},
		{"  \t \r", ""},
		{"# block a", ""},
		{"   # block a", ""},
		{"block 203.0.113.7 --for 1h", "[block][203.0.113.7][--for][1h]"},
		{"\tblock\t a \r", "[block][a]"},
		{"block a # why", "[block][a]"},
		{"block a#b", "[block][a#b]"},
		{"block a --note \"two words\"", "[block][a][--note][two words]"},
		{"block a --note 'two  \"words\" \\ #'", "[block][a][--note][two  \"words\" \\ #]"},
		{"--note=\"a b\"c' d'", "[--note=a bc d]"},
		{"\"\" ''", "[][]"},
		{"\"a\\\"b\\\\c\\d\"", "[a\"b\\c\\d]"},
		{"a\\ b \\# \\\"c \\\\", "[a b][#][\"c][\\]"},
		{"$HOME * `x` ; ~", "[$HOME][*][`x`][;][~]"},
		{"gr\xc3\xbc\xc3\x9f", "[gr\xc3\xbc\xc3\x9f]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP_FREE char *words = words_of(lines[i].line);

		assert_string_equal(words, lines[i].words);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *line, *text;
		size_t len;
	} lines[] = {
		{"block \"a", "missing closing quote \"", 8},
		{"block 'a\"", "missing closing quote '", 9},
		{"block \"a\\\"", "missing closing quote \"", 10},
		{"block a \\", "backslash at the end of the line", 9},
		{"block \0a", "NUL byte in the line", 8},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP_SPLIT struct split s = {0};
		struct err err = {0};

		assert_int_equal(split_line(lines[i].line, lines[i].len, &s, &err), -EINVAL);
		assert_string_equal(err.text, lines[i].text);
	}
}

// Any bytes: no word reaches beyond its text, and nothing is read beyond the line.
static void test_any_bytes(void **state)
{
	static const char alphabet[] = "a \"'\\#\t";
	uint64_t random = 1;

	for (int turn = 0; turn < 20000; turn++) {
		size_t len = (size_t)turn % 12, room = 0;
		CLEANUP_FREE char *line = mem_zalloc(len + 1, 1);
		CLEANUP_SPLIT struct split s = {0};

		for (size_t i = 0; i < len; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			line[i] = alphabet[(random >> 33) % (sizeof(alphabet) - 1)];
		}
		if (split_line(line, len, &s, NULL))
			continue;
		vec_each (&s.words, word)
			room += strlen(*word) + 1;
		assert_true(room <= len + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
