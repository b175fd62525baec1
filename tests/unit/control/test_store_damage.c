// SPDX-License-Identifier: GPL-2.0-only
// Damaged, foreign and old files of the store (ctl/control/entries/store.h).
#include "tests/unit/control/store_kernel.h"

static void write_damaged(const char *text, size_t len, size_t at)
{
	CLEANUP_FREE char *copy = mem_realloc(NULL, len, 1);
	CLEANUP_FREE char *index = index_path_of("test");

	memcpy(copy, text, len);
	if (at < len)
		copy[at] ^= 1;
	write_file(file_of("overlay"), copy, len);
	journal_index_remove_file(index);
}

// The entries in the kernel are kept; the file is used up to the damage, is kept as it is, and is
// replaced.
static void assert_recovers(size_t at, size_t first_end)
{
	CLEANUP_STORE struct store *b = opened_whole();
	CLEANUP_FREE char *where = mem_printf("at byte %zu ", at);

	assert_true(b->damaged.text[0] != '\0');
	assert_non_null(strstr(b->damaged.text, file_of("overlay")));
	if (at >= first_end)
		assert_non_null(strstr(b->damaged.text, where));
	assert_int_equal(b->records.list.n, 2);
	assert_int_equal(references(b, "192.0.2.1"), 1);
	if (at >= first_end)
		assert_string_equal(b->records.owners.at[b->records.list.at[0].owner].origin, "a");
	refer(b, "192.0.2.3", "", RECORD_NEVER, false);
	commit_now(b);
	assert_true(file_exists(file_of("overlay.damaged")));
	reopen(&b);
	assert_int_equal(b->damaged.text[0], 0);
	assert_int_equal(b->records.list.n, 3);
	assert_int_equal(kernel->n, 3);
}

static void test_damaged_file(void **state)
{
	CLEANUP_FREE char *text = NULL;
	struct kernel *saved = mem_new(struct kernel);
	size_t len, first_end;

	block("192.0.2.1", "a", RECORD_NEVER, false);
	first_end = size_of_file(file_of("overlay"));
	block("192.0.2.2", "b", RECORD_NEVER, false);
	assert_int_equal(file_read(file_of("overlay"), 1 << 20, &text, &len, NULL), 0);
	*saved = *kernel;
	for (size_t at = 0; at < len; at++) {
		if (at == strlen(JOURNAL_HEAD) - 2) // "weir-overlay 3" is refused
			continue;
		*kernel = *saved;
		unlink(file_of("overlay.damaged"));
		write_damaged(text, len, at);
		assert_recovers(at < first_end ? at : first_end, first_end);
		*kernel = *saved;
		if (at == first_end) // that is an older file, not a damaged one
			continue;
		unlink(file_of("overlay.damaged"));
		write_damaged(text, at, at);
		assert_recovers(at < first_end ? at : first_end, first_end);
	}
	free(saved);
}

// A damaged file of version 1, or one of a newer version, is refused and not changed.
static void test_refused_files(void **state)
{
	static const char *const texts[] = {
		"weir-overlay 1 epoch 2\nend 1\n",
		"weir-overlay 1 epoch 2\nend 0\nsum 0123456789abcdef\n",
		"weir-overlay 3\n",
	};
	size_t n;

	block("192.0.2.1", "", RECORD_NEVER, false);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct store *b = NULL;
		struct err err = {0};

		write_file(file_of("overlay"), texts[i], strlen(texts[i]));
		assert_true(store_open("test", "unit", &b, &err) < 0);
		assert_null(b);
		assert_int_equal(err.kind, ERR_SYSTEM); // the operator did not type it
		assert_non_null(strstr(err.text, file_of("overlay")));
		assert_true(err.hint[0] != '\0');
		assert_true(store_count("test", &n) < 0);
		assert_int_equal(kernel->n, 1);
		assert_int_equal(size_of_file(file_of("overlay")), strlen(texts[i]));
	}
}

// A file of version 1 is read and replaced.
static void test_old_file(void **state)
{
	static const char old[] =
		"weir-overlay 1 epoch 1\n"
		"holder 0 since 5 origin \"ban\" list \"\" name \"\" note \"n\" by \"\"\n"
		"block from 192.0.2.1 by 0 until never\n"
		"end 1\n";
	CLEANUP_FREE char *folder = mem_printf("%s/test", state_folder);
	CLEANUP_FREE char *text = NULL;
	CLEANUP_STORE struct store *b = NULL;
	size_t len;

	assert_int_equal(file_mkdirs(folder, 0700, NULL), 0);
	write_file(file_of("overlay"), old, strlen(old));
	kernel->now[kernel->n++] = (struct overlay_entry){
		.prefix = prefix("192.0.2.1"), .kind = BLOCK, .until = OVERLAY_FOREVER};
	b = opened_whole();
	assert_has_owner(b, "ban");
	refer(b, "192.0.2.2", "", RECORD_NEVER, false);
	commit_now(b);
	assert_int_equal(file_read(file_of("overlay"), 1 << 20, &text, &len, NULL), 0);
	assert_memory_equal(text, JOURNAL_HEAD, strlen(JOURNAL_HEAD));
	reopen(&b);
	assert_int_equal(b->records.list.n, 2);
	assert_string_equal(b->records.owners.at[b->records.list.at[0].owner].note, "n");
}

// An overlay.new that is damaged, or of another epoch, is never used.
static void test_foreign_file_beside(void **state)
{
	static const char *const texts[] = {"", "damaged", "weir-overlay 1 epoch 7\nend 0\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP_STORE struct store *b = NULL;

		set_up(NULL);
		block("192.0.2.1", "ban", RECORD_NEVER, false);
		write_file(file_of("overlay.new"), texts[i], strlen(texts[i]));
		b = seen();
		assert_has_owner(b, "ban");
		assert_true(file_exists(file_of("overlay.new")));
		reopen(&b);
		assert_has_owner(b, "ban");
		assert_false(file_exists(file_of("overlay.new")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_damaged_file, set_up),
		cmocka_unit_test_setup(test_refused_files, set_up),
		cmocka_unit_test_setup(test_old_file, set_up),
		cmocka_unit_test_setup(test_foreign_file_beside, set_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
