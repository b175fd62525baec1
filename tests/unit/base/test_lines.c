// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of lists read line by line.
#include "tests/unit/base/unit.h"

#include "ctl/base/lines.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

// "NUMBER:WORD,WORD;" for each line that is not empty.
static void check(const char *list, const char *wanted)
{
	size_t len = strlen(list);
	char *exact = malloc(len ? len : 1); // no byte after it may be read
	struct text got = {0};
	struct lines l;

	assert_non_null(exact);
	memcpy(exact, list, len);
	l = lines_of(exact, len);
	while (lines_next(&l)) {
		text_addf(&got, "%u:", l.number);
		for (struct word w = lines_word(&l); w.len; w = lines_word(&l))
			text_addf(&got, "%.*s,", (int)w.len, w.at);
		text_add(&got, ";");
	}
	assert_string_equal(text_get(&got), wanted);
	text_free(&got);
	free(exact);
}

static void test_lines(void **state)
{
	check("", "");
	check("\n\n", "");
	check("a", "1:a,;");
	check("a\nb", "1:a,;2:b,;");
	check("a\r\n\r\n \tb\t \r\n", "1:a,;3:b,;");
	check("\xef\xbb\xbf"
	      "a",
	      "1:a,;");
	check("a\n\xef\xbb\xbf"
	      "b",
	      "1:a,;2:\xef\xbb\xbf"
	      "b,;");
	check("\xef\xbb", "1:\xef\xbb,;");
}

static void test_comments(void **state)
{
	check("# all\n  ; of it\na # b\nc;d\ne#f\n#", "3:a,;4:c,;5:e,;");
	check("a b  c", "1:a,b,c,;");
	check("a b#c d", "1:a,b,;");
}

static void test_words(void **state)
{
	static const char *const some[] = {"to", "both"};
	struct word w = {"both ", 4}, none = {"", 0};

	assert_true(word_is(w, "both"));
	assert_false(word_is(w, "both "));
	assert_false(word_is(w, "bot"));
	assert_true(word_is_one_of(w, some, ARRAY_SIZE(some)));
	assert_false(word_is_one_of(none, some, ARRAY_SIZE(some)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
