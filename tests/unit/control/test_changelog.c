// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/changelog.h: a line is read as it was written, damage is skipped, and
// the files stay bounded.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/file_tree.h"
#include "ctl/datapath/bpffs.h"

static const char pattern[] = "/tmp/weir-changelog-XXXXXX";
static char root_folder[sizeof(pattern)];
#undef WEIR_RUN_FOLDER
#undef WEIR_STATE_FOLDER
#define WEIR_RUN_FOLDER   root_folder
#define WEIR_STATE_FOLDER root_folder
#include "ctl/control/changelog.c"
#include "ctl/control/changelog_follow.c"

static const struct changelog_choice everything;

#define T0 1790000000000ull

static void begin(void)
{
	CLEANUP_FREE char *path = NULL;

	memcpy(root_folder, pattern, sizeof(pattern));
	assert_non_null(mkdtemp(root_folder));
	path = mem_printf("%s/main", root_folder);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void end(void)
{
	file_remove_tree(root_folder, NULL);
}

static void add(uint64_t at_ms, bool entries)
{
	changelog_add("main", &(struct changelog_change){.at_ms = at_ms,
							 .entries = entries,
							 .verb = (char *)"block",
							 .command = (char *)"block a",
							 .by = (char *)"root",
							 .result = (char *)"done",
							 .added = 1});
}

static void test_a_line_is_read_as_written(void **state)
{
	char longest[3 * CHANGELOG_TEXT];
	struct changelog_change c = {.at_ms = T0,
				     .uid = 7,
				     .verb = (char *)"block",
				     .command = longest,
				     .by = (char *)"a\x1b[1m\nb",
				     .result = (char *)"refused",
				     .text = longest,
				     .added = 3};
	CLEANUP_FREE char *line = NULL;
	struct changelog_change again;

	memset(longest, '"', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	line = changelog_print(&c, UINT32_MAX);
	assert_true(strlen(line) < CHANGELOG_LINE);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	assert_int_equal(changelog_parse(line, strlen(line) - 1, &again), 0);
	assert_int_equal(again.at_ms, T0);
	assert_int_equal(again.uid, 7);
	assert_int_equal(again.added, 3);
	assert_string_equal(again.by, "a?[1m?b");
	assert_true(strlen(again.text) < CHANGELOG_TEXT);
	changelog_free_change(&again);
}

static void test_foreign_lines_are_refused(void **state)
{
	static const char *const lines[] = {"",
					    "x",
					    "[]",
					    "{}",
					    "{\"verb\":\"a\"}",
					    "{\"at_ms\":1}",
					    "{\"at_ms\":\"1\",\"verb\":\"a\"}",
					    "{\"at_ms\":-1,\"verb\":\"a\"}",
					    "{\"at_ms\":1,\"verb\":\"\"}"};
	struct changelog_change c;

	for (size_t n = 0; n < ARRAY_SIZE(lines); n++)
		assert_int_equal(changelog_parse(lines[n], strlen(lines[n]), &c), -EBADMSG);
}

static void test_the_last_lines_remain(void **state)
{
	CLEANUP_CHANGELOG struct changelog all = {0};
	size_t n = 2 * CHANGELOG_ENTRIES + 3;

	begin();
	for (size_t at = 0; at < n; at++)
		add(T0 + at, true);
	add(T0 + n, false);
	assert_int_equal(changelog_read("main", &everything, &all, NULL), 0);
	assert_int_equal(all.list.n, CHANGELOG_ENTRIES + 3 + 1);
	assert_int_equal(all.list.at[0].at_ms, T0 + CHANGELOG_ENTRIES);
	assert_int_equal(vec_last(&all.list)->at_ms, T0 + n);
	assert_int_equal(all.damaged, 0);
	assert_int_equal(changelog_lost("main"), 0);
	end();
}

static void test_a_cut_line_ends_before_the_next(void **state)
{
	CLEANUP_CHANGELOG struct changelog all = {0};
	CLEANUP_FREE char *path = NULL;

	begin();
	path = mem_printf("%s/main/changes", root_folder);
	add(T0, false);
	assert_int_equal(truncate(path, 20), 0);
	add(T0 + 1, false);
	assert_int_equal(changelog_read("main", &everything, &all, NULL), 0);
	assert_int_equal(all.list.n, 1);
	assert_int_equal(all.list.at[0].at_ms, T0 + 1);
	assert_int_equal(all.damaged, 1);
	end();
}

static void test_secrets_of_urls_are_left_out(void **state)
{
	static const char *const texts[][2] = {
		{"block --sync a https://u:p@host/list?key=s#f --for 1d",
		 "block --sync a https://...@host/list?... --for 1d"},
		{"cannot fetch 'http://u:p@ss@host': no", "cannot fetch 'http://...@host': no"},
		{"a http://h/x@y b https://:s@[2001:db8::1]:8/",
		 "a http://h/x@y b https://...@[2001:db8::1]:8/"},
		{"://", "://"},
		{"a://@", "a://...@"},
		{"x@y", "x@y"},
	};

	for (size_t n = 0; n < ARRAY_SIZE(texts); n++) {
		const struct changelog_change c = {.at_ms = 1,
						   .verb = (char *)"block",
						   .command = (char *)texts[n][0],
						   .text = (char *)texts[n][0]};
		CLEANUP_FREE char *line = changelog_print(&c, 1);
		struct changelog_change again;

		assert_int_equal(changelog_parse(line, strlen(line) - 1, &again), 0);
		assert_string_equal(again.command, texts[n][1]);
		assert_string_equal(again.text, texts[n][1]);
		changelog_free_change(&again);
	}
}

static void test_a_folder_is_made_only_for_what_is_done(void **state)
{
	struct changelog_change c = {
		.at_ms = T0, .verb = (char *)"forget", .result = (char *)"refused"};
	CLEANUP_CHANGELOG struct changelog all = {0};
	CLEANUP_FREE char *path = NULL;

	begin();
	path = mem_printf("%s/other", root_folder);
	changelog_add("other", &c);
	assert_int_equal(access(path, F_OK), -1);
	c.result = (char *)CHANGELOG_DONE;
	changelog_add("other", &c);
	assert_int_equal(changelog_read("other", &everything, &all, NULL), 0);
	assert_int_equal(all.list.n, 1);
	assert_int_equal(changelog_lost("other"), 0);
	end();
}

static void test_what_is_not_recorded_is_counted(void **state)
{
	CLEANUP_FREE char *path = NULL;

	begin();
	path = mem_printf("%s/main/changes", root_folder);
	assert_int_equal(mkdir(path, 0700), 0);
	add(T0, false);
	add(T0, false);
	assert_int_equal(changelog_lost("main"), 2);
	end();
}

// The result is the one of a whole read, however few bytes suffice.
static void test_the_last_changes_are_the_end_of_all(void **state)
{
	CLEANUP_CHANGELOG struct changelog all = {0};

	begin();
	for (size_t at = 0; at < CHANGELOG_ENTRIES + 50; at++)
		add(T0 + at * 1000, true);
	for (size_t at = 0; at < 20; at++)
		add(T0 + at * 1000 + 1, false);
	assert_int_equal(changelog_read("main", &everything, &all, NULL), 0);
	for (size_t last = 1; last <= all.list.n + 1; last = last * 3 + 1) {
		struct changelog_choice choice = {.last = last};
		CLEANUP_CHANGELOG struct changelog some = {0};
		size_t n = last < all.list.n ? last : all.list.n;

		assert_int_equal(changelog_read("main", &choice, &some, NULL), 0);
		assert_int_equal(some.list.n, n);
		for (size_t at = 0; at < n; at++)
			assert_int_equal(some.list.at[at].at_ms,
					 all.list.at[all.list.n - n + at].at_ms);
	}
	end();
}

static bool is_rare(const struct changelog_change *c, const void *ctx)
{
	return c->at_ms == T0 + 5;
}

static void test_a_rare_change_is_found_far_from_the_end(void **state)
{
	const struct changelog_choice choice = {.last = 1, .wants = is_rare};
	CLEANUP_CHANGELOG struct changelog some = {0};

	begin();
	for (size_t at = 0; at < 9000; at++)
		add(T0 + at, true);
	assert_int_equal(changelog_read("main", &choice, &some, NULL), 0);
	assert_int_equal(some.list.n, 1);
	end();
}

static void add_about(const char *by, const char *about)
{
	changelog_add("main", &(struct changelog_change){.at_ms = T0,
							 .verb = (char *)"drain",
							 .by = (char *)by,
							 .about = (char *)about,
							 .result = (char *)"done"});
}

static void test_the_last_author_of_a_backend(void **state)
{
	struct changelog_authors authors = {.instance = "main"};

	begin();
	add_about("first", "web 10.0.0.1; web 10.0.0.2; ");
	add_about("second", "web 10.0.0.1; ");
	for (size_t at = 0; at < 3000; at++) // more than the part that is read at first
		add(T0 + at, false);
	add_about("third", "web 10.0.0.11; ");
	assert_string_equal(changelog_author(&authors, "web 10.0.0.11"), "third");
	assert_false(authors.all);
	assert_string_equal(changelog_author(&authors, "web 10.0.0.2"), "first");
	assert_string_equal(changelog_author(&authors, "web 10.0.0.1"), "second");
	assert_null(changelog_author(&authors, "eb 10.0.0.1"));
	assert_true(authors.all);
	changelog_authors_free(&authors);
	end();
}

// Each change is read once, whatever happens to the file.
static void test_a_follower_misses_and_repeats_nothing(void **state)
{
	CLEANUP_CHANGELOG struct changelog got = {0};
	CLEANUP(close_follow) struct changelog_follow *f = NULL;
	CLEANUP_FREE char *path = NULL, *old = NULL;
	bool more = true;
	size_t n = 0;
	int fd;

	begin();
	path = mem_printf("%s/main/changes", root_folder);
	for (; n < 2000; n++) // more than a piece
		add(T0 + n, false);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "{\"n\":", 5), 5); // a line that is not complete
	assert_int_equal(changelog_follow_open("main", &everything, &f, &got, NULL), 0);
	assert_int_equal(got.list.n, n);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 5), 0);
	close(fd);
	for (; n < 4000; n++)
		add(T0 + n, false);
	old = mem_printf("%s.old", path);
	assert_int_equal(rename(path, old), 0);
	for (; n < 4100; n++)
		add(T0 + n, false);
	while (more)
		assert_int_equal(changelog_follow_wait(f, 0, &everything, &got, &more, NULL), 0);
	assert_int_equal(got.list.n, n);
	for (size_t at = 0; at < n; at++)
		assert_int_equal(got.list.at[at].at_ms, T0 + at);
	assert_int_equal(got.damaged, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_is_read_as_written),
		cmocka_unit_test(test_foreign_lines_are_refused),
		cmocka_unit_test(test_the_last_lines_remain),
		cmocka_unit_test(test_a_cut_line_ends_before_the_next),
		cmocka_unit_test(test_secrets_of_urls_are_left_out),
		cmocka_unit_test(test_a_folder_is_made_only_for_what_is_done),
		cmocka_unit_test(test_what_is_not_recorded_is_counted),
		cmocka_unit_test(test_the_last_changes_are_the_end_of_all),
		cmocka_unit_test(test_a_rare_change_is_found_far_from_the_end),
		cmocka_unit_test(test_the_last_author_of_a_backend),
		cmocka_unit_test(test_a_follower_misses_and_repeats_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
