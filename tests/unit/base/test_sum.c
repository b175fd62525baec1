// SPDX-License-Identifier: GPL-2.0-only
// Sums of files: known answers, and every way to damage one.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"

#define TEXT   "7f3a\n"
#define SEALED TEXT "sum d6df63a084bcad66\n"

// From the FNV reference's test vectors.
static void test_known_answers(void **state)
{
	sum_text sum;

	sum_of("", 0, sum);
	assert_string_equal(sum, "cbf29ce484222325");
	sum_of("a", 1, sum);
	assert_string_equal(sum, "af63dc4c8601ec8c");
	sum_of("foobar", 6, sum);
	assert_string_equal(sum, "85944171f73967e8");
}

// The sum of words: each byte counts, at its offset, and so does the length.
static void test_words(void **state)
{
	char bytes[41] = {0};
	sum_text sums[3 * sizeof(bytes)];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		sum_of_words(bytes, i, sums[n++]);
		bytes[i] = 1;
		sum_of_words(bytes, sizeof(bytes), sums[n++]);
		bytes[i] = (char)0x80;
		sum_of_words(bytes, sizeof(bytes), sums[n++]);
		bytes[i] = 0;
	}
	for (size_t a = 0; a < n; a++)
		for (size_t b = a + 1; b < n; b++)
			assert_string_not_equal(sums[a], sums[b]);
}

static void test_seal_and_open(void **state)
{
	CLEANUP_FREE char *sealed = NULL;
	size_t len;

	sealed = sum_seal(TEXT, strlen(TEXT), &len);
	assert_int_equal(len, strlen(SEALED));
	assert_int_equal(sum_open(sealed, &len), 0);
	assert_int_equal(len, strlen(TEXT));
	assert_memory_equal(sealed, TEXT, len);
}

static void test_without_a_sum(void **state)
{
	static const char *const texts[] = {
		"", "sum", TEXT, "sum d6df63a084bcad66", TEXT "sum 1\n", "xsum 24ffa14beacc2eb5\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		size_t len = strlen(texts[i]);

		assert_int_equal(sum_open(texts[i], &len), 0);
		assert_int_equal(len, strlen(texts[i]));
	}
}

// Found, or the line is no longer a sum, which the reader of the text refuses.
static void test_every_changed_byte(void **state)
{
	CLEANUP_FREE char *sealed = NULL;
	size_t whole;

	sealed = sum_seal(TEXT, strlen(TEXT), &whole);
	for (size_t i = 0; i < whole; i++)
		for (unsigned value = 1; value < 256; value++) {
			size_t len = whole;
			int code;

			sealed[i] = (char)(sealed[i] ^ (char)value);
			code = sum_open(sealed, &len);
			assert_true(code == -EBADMSG || len == whole);
			assert_true(code == -EBADMSG || i >= strlen(TEXT) - 1);
			sealed[i] = (char)(sealed[i] ^ (char)value);
		}
}

// The folders above the file are created, and reading returns the text.
static void test_write(void **state)
{
	char folder[] = "/tmp/weir-sum-XXXXXX";
	CLEANUP_FREE char *path = NULL, *blocked = NULL, *text = NULL;
	struct err err = {0};
	struct stat st;
	size_t len;

	assert_non_null(mkdtemp(folder));
	path = mem_printf("%s/a/b/revision", folder);
	blocked = mem_printf("%s/below", path);
	for (size_t again = 0; again < 2; again++)
		assert_int_equal(sum_write(path, TEXT, strlen(TEXT), &err), 0);
	assert_int_equal(file_read(path, 100, &text, &len, &err), 0);
	assert_string_equal(text, SEALED);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(sum_write(blocked, TEXT, strlen(TEXT), &err), -ENOTDIR);
	assert_int_equal(file_remove_tree(folder, NULL), 0);
	err_clear(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),      cmocka_unit_test(test_words),
		cmocka_unit_test(test_seal_and_open),      cmocka_unit_test(test_without_a_sum),
		cmocka_unit_test(test_every_changed_byte), cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
