// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/state.h: the bytes of a file, what is refused and why, and the files of
// versions before this format.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/sum.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

static const char folder_pattern[] = "/tmp/weir-state-XXXXXX";
static char state_folder[sizeof(folder_pattern)];
#undef WEIR_STATE_FOLDER
#define WEIR_STATE_FOLDER state_folder
#define path_of           overrides_path_of
#define read_row          overrides_read_row
#define read_old          overrides_read_old
#include "ctl/control/overrides.c"
#undef path_of
#undef read_row
#undef read_old
#define path_of  attachments_path_of
#define read_row attachments_read_row
#define read_old attachments_read_old
#include "ctl/control/attachments.c"
#undef path_of
#undef read_row
#undef read_old
#define read_row  feeds_read_row
#define read_old  feeds_read_old
#define read_text feeds_read_text
#include "ctl/control/feeds.c"
#undef read_row
#undef read_old
#undef read_text

static char file_path[sizeof(folder_pattern) + 32];

static int set_up(void **state)
{
	memcpy(state_folder, folder_pattern, sizeof(folder_pattern));
	assert_non_null(mkdtemp(state_folder));
	snprintf(file_path, sizeof(file_path), "%s/file", state_folder);
	return 0;
}

static int tear_down(void **state)
{
	return file_remove_tree(state_folder, NULL);
}

// ---- the format ---------------------------------------------------------------------------------

struct found {
	char names[64];
	char text[64];
	size_t text_len;
};

static int take(void *ctx, const struct json *row)
{
	struct found *found = ctx;
	const char *name = json_get_string(row, "name");

	if (!name)
		return -EBADMSG;
	snprintf(found->names + strlen(found->names), sizeof(found->names) - strlen(found->names),
		 "%s,", name);
	return 0;
}

static int take_bytes(void *ctx, const char *text, size_t len)
{
	struct found *found = ctx;

	assert_true(len < sizeof(found->text));
	memcpy(found->text, text, len);
	found->text_len = len;
	return 0;
}

static const struct state_kind port = {.name = "port", .row = take};
static const struct state_kind page = {.name = "port", .row = take, .text = take_bytes};

static struct json *named(const char *name)
{
	struct json *row = json_object();

	json_set(row, "name", json_string(name));
	return row;
}

static int read_it(const struct state_kind *kind, struct found *ret, struct err *err)
{
	*ret = (struct found){0};
	*err = (struct err){0};
	return state_read(file_path, kind, ret, err);
}

static void test_the_bytes(void **state)
{
	static const char wanted[] = "weir-state 1\n"
				     "port {\"name\":\"a\"}\n"
				     "port {\"name\":\"b c\\nd\"}\n"
				     "sum ";
	CLEANUP_TEXT struct text file = {0};
	CLEANUP_FREE char *text = NULL;
	struct found found;
	struct err err;
	size_t len;

	state_add(&file, &port, named("a"));
	state_add(&file, &port, named("b c\nd"));
	assert_int_equal(state_write(file_path, &file, &err), 0);
	assert_int_equal(file_read(file_path, 4096, &text, &len, NULL), 0);
	assert_int_equal(len, sizeof(wanted) - 1 + 17);
	assert_memory_equal(text, wanted, sizeof(wanted) - 1);
	assert_int_equal(read_it(&port, &found, &err), 0);
	assert_string_equal(found.names, "a,b c\nd,");
}

static void test_a_missing_file_and_one_without_rows(void **state)
{
	CLEANUP_TEXT struct text file = {0};
	struct found found;
	struct err err;

	assert_int_equal(read_it(&port, &found, &err), 0);
	assert_int_equal(state_write(file_path, &file, &err), 0);
	assert_int_equal(read_it(&port, &found, &err), 0);
	assert_string_equal(found.names, "");
}

// Any bytes: also those that look like the end of the file, and with no newline at the end.
static void test_the_text(void **state)
{
	static const char text[] = "1.2.3.4\nsum 0123456789abcdef\n\0port {}\nlast";
	CLEANUP_TEXT struct text file = {0};
	struct found found;
	struct err err;

	state_add(&file, &page, named("a"));
	state_add_text(&file, text, sizeof(text) - 1);
	assert_int_equal(state_write(file_path, &file, &err), 0);
	assert_int_equal(read_it(&page, &found, &err), 0);
	assert_int_equal(found.text_len, sizeof(text) - 1);
	assert_memory_equal(found.text, text, sizeof(text) - 1);
	assert_int_equal(read_it(&port, &found, &err), -ENOTSUP); // it expects no text
}

static void test_every_damage(void **state)
{
	CLEANUP_TEXT struct text file = {0};
	CLEANUP_FREE char *good = NULL;
	struct found found;
	struct err err;
	size_t len;
	int code;

	state_add(&file, &page, named("a"));
	state_add_text(&file, "text", 4);
	assert_int_equal(state_write(file_path, &file, &err), 0);
	assert_int_equal(file_read(file_path, 4096, &good, &len, NULL), 0);
	for (size_t at = 0; at < len; at++) {
		good[at] ^= 1;
		assert_int_equal(file_replace(file_path, good, len, 0600, NULL), 0);
		code = read_it(&page, &found, &err);
		good[at] ^= 1;
		// The number of the format, and the newline after it.
		assert_int_equal(code, at == 11 || at == 12 ? -ENOTSUP : -EBADMSG);
		assert_non_null(strstr(err.text, file_path));
		assert_int_equal(found.text_len, 0);
	}
	for (size_t cut = 0; cut < len; cut++) {
		assert_int_equal(file_replace(file_path, good, cut, 0600, NULL), 0);
		assert_true(read_it(&page, &found, &err) < 0);
		assert_string_equal(found.names, "");
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *what;
	} cases[] = {
		{"weir-state 2\nport {}\n", -ENOTSUP,
		 "was written by a newer version: 'weir-state 2' is unknown"},
		{"weir-state 1\nport {\"name\":\"a\"}\nlink {}\n", -ENOTSUP,
		 "was written by a newer version: 'link' is unknown"},
		{"weir-state 1\nport {\"name\":\"a\"}\nport\n", -EBADMSG,
		 "is damaged: line 3 is not valid"},
		{"weir-state 1\nport {\"name\":\"a\"\n", -EBADMSG,
		 "is damaged: line 2 is not valid"},
		{"weir-state 1\nport {}\n", -EBADMSG, "is damaged: line 2 is not valid"},
		{"something\n", -EBADMSG, "is damaged: unknown format"},
	};
	struct found found;
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(sum_write(file_path, cases[i].text, strlen(cases[i].text), NULL),
				 0);
		assert_int_equal(read_it(&port, &found, &err), cases[i].code);
		assert_non_null(strstr(err.text, cases[i].what));
	}
}

static void test_a_damaged_file_is_kept(void **state)
{
	CLEANUP_FREE char *kept = mem_printf("%s.damaged", file_path);
	CLEANUP_FREE char *text = NULL;
	size_t len;

	assert_int_equal(file_replace(file_path, "x", 1, 0600, NULL), 0);
	assert_int_equal(state_set_aside(file_path, NULL), 0);
	assert_false(file_exists(file_path));
	assert_int_equal(file_read(kept, 16, &text, &len, NULL), 0);
	assert_string_equal(text, "x");
	assert_int_equal(state_set_aside(file_path, NULL), -ENOENT);
}

// ---- files of earlier versions ------------------------------------------------------------------

static void write_in(const char *name, const char *text)
{
	CLEANUP_FREE char *path = mem_printf("%s/main/%s", state_folder, name);

	assert_int_equal(sum_write(path, text, strlen(text), NULL), 0);
}

static void check_overrides(struct err *err)
{
	CLEANUP_VEC struct overrides overrides = {0};

	assert_int_equal(overrides_read("main", &overrides, err), 0);
	assert_int_equal(overrides.n, 2);
	assert_string_equal(overrides.at[0].service, "web");
	assert_int_equal(overrides.at[0].addr.family, 4);
	assert_int_equal(overrides.at[0].port, 80);
	assert_int_equal(overrides.at[0].state, BACKEND_DRAIN);
	assert_false(overrides.at[0].weighed);
	assert_int_equal(overrides.at[1].addr.family, 0);
	assert_true(overrides.at[1].weighed);
	assert_int_equal(overrides.at[1].weight, 0);
	assert_int_equal(overrides.at[1].until_s, 9);
	assert_int_equal(overrides_write("main", &overrides, err), 0);
}

static void test_old_overrides(void **state)
{
	struct err err = {0};

	write_in("drains",
		 "{\n  \"drains\": [\n"
		 "{\"service\": \"web\", \"address\": \"203.0.113.7\", \"port\": 80, "
		 "\"state\": 1, \"until_s\": 0},\n"
		 "{\"service\": \"web\", \"address\": \"here\", \"port\": 0, \"state\": 0, "
		 "\"weight\": 0, \"until_s\": 9}]\n}\n");
	check_overrides(&err); // and writes them
	check_overrides(&err);
	write_in("drains", "{\"other\": []}\n");
	assert_int_equal(overrides_read("main", &(struct overrides){0}, &err), -EBADMSG);
	assert_string_equal(err.hint, "move it away to start without overrides");
}

static void test_old_interfaces(void **state)
{
	CLEANUP_ATTACHMENTS struct attachments a = {0};
	struct err err = {0};

	write_in("interfaces", "eth0 auto\neth1 generic\n");
	assert_int_equal(attachments_put("main", "eth2", ATTACH_NATIVE, &err), 0);
	assert_int_equal(attachments_read("main", &a, &err), 0);
	assert_int_equal(a.list.n, 3);
	assert_string_equal(a.list.at[1].name, "eth1");
	assert_int_equal(a.list.at[1].mode, ATTACH_GENERIC);
	assert_string_equal(a.list.at[2].name, "eth2");
	assert_string_equal(err.text, "");
	attachments_free(&a);
	for (size_t i = 0; i < 3; i++) {
		static const char *const bad[] = {"eth0 other\n", "eth0\n",
						  "a-name-that-is-too-long auto\n"};

		write_in("interfaces", bad[i]);
		assert_int_equal(attachments_read("main", &a, &err), -EBADMSG);
	}
}

static void test_old_feed(void **state)
{
	CLEANUP_FREE char *path = feed_path("main", "https://a.lab/l", "");
	CLEANUP_FEED struct feed feed = {0}, again = {0};
	struct err err = {0};

	write_in(strstr(path, "feeds/"), "{\"url\":\"https://a.lab/"
					 "l\",\"etag\":\"e\",\"fetched_s\":7,\"entries\":1}\n"
					 "192.0.2.1\n");
	assert_int_equal(feed_load("main", "https://a.lab/l", &feed, &err), 0);
	assert_string_equal(feed.etag, "e");
	assert_null(feed.modified);
	assert_string_equal(feed.text, "192.0.2.1\n");
	feed.text[--feed.len] = '\0';
	assert_int_equal(feed_save("main", &feed, &err), 0);
	assert_int_equal(feed_load("main", "https://a.lab/l", &again, &err), 0);
	assert_string_equal(again.text, "192.0.2.1");
	assert_int_equal(again.fetched_s, 7);
	assert_int_equal(again.entries, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_missing_file_and_one_without_rows, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_the_text, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_every_damage, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_file_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_overrides, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_interfaces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_feed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
