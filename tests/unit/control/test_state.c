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
#include "ctl/base/file_tree.h"
#include "ctl/base/sum.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

static const char folder_pattern[] = "/tmp/weir-state-XXXXXX";
static char state_folder[sizeof(folder_pattern)];
#undef WEIR_STATE_FOLDER
#undef WEIR_RUN_FOLDER
#define WEIR_STATE_FOLDER state_folder
#define WEIR_RUN_FOLDER   state_folder
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
#define path_of  health_path_of
#define read_row health_read_row
#define read_old health_read_old
#define is_of    health_is_of
#include "ctl/control/health_file.c"
#undef path_of
#undef read_row
#undef read_old
#undef is_of
#define path_of  feed_lists_path_of
#define read_row feed_lists_read_row
#define read_old feed_lists_read_old
#include "ctl/control/feed_lists.c"
#undef path_of
#undef read_row
#undef read_old
#define path_of  answered_path_of
#define read_row answered_read_row
#define read_old answered_read_old
#include "ctl/control/answered.c"

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

static void add_named(struct json_writer *file, const struct state_kind *kind, const char *name)
{
	state_add(file, kind);
	json_write_string(file, "name", name);
	json_write_end(file);
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
	CLEANUP(json_writer_free) struct json_writer file = {0};
	CLEANUP_FREE char *text = NULL;
	struct found found;
	struct err err;
	size_t len;

	add_named(&file, &port, "a");
	add_named(&file, &port, "b c\nd");
	assert_int_equal(state_write(file_path, &file, &err), 0);
	assert_int_equal(file_read(file_path, 4096, &text, &len, NULL), 0);
	assert_int_equal(len, sizeof(wanted) - 1 + 17);
	assert_memory_equal(text, wanted, sizeof(wanted) - 1);
	assert_int_equal(read_it(&port, &found, &err), 0);
	assert_string_equal(found.names, "a,b c\nd,");
}

static void test_a_missing_file_and_one_without_rows(void **state)
{
	CLEANUP(json_writer_free) struct json_writer file = {0};
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
	CLEANUP(json_writer_free) struct json_writer file = {0};
	struct found found;
	struct err err;

	add_named(&file, &page, "a");
	state_add_text(&file, text, sizeof(text) - 1);
	assert_int_equal(state_write(file_path, &file, &err), 0);
	assert_int_equal(read_it(&page, &found, &err), 0);
	assert_int_equal(found.text_len, sizeof(text) - 1);
	assert_memory_equal(found.text, text, sizeof(text) - 1);
	assert_int_equal(read_it(&port, &found, &err), -ENOTSUP); // it expects no text
}

static void test_every_damage(void **state)
{
	CLEANUP(json_writer_free) struct json_writer file = {0};
	CLEANUP_FREE char *good = NULL;
	struct found found;
	struct err err;
	size_t len;
	int code;

	add_named(&file, &page, "a");
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
		assert_int_equal(read_it(&page, &found, &err), -EBADMSG);
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

static void test_old_health(void **state)
{
	CLEANUP_VEC struct health_records records = {0};
	struct err err = {0};

	write_in("health",
		 "{\"backends\":[{\"service\":\"web\",\"address\":\"here\",\"port\":0,\"state\":0},"
		 "{\"service\":\"web\",\"address\":\"203.0.113.7\",\"port\":80,\"state\":3,"
		 "\"known\":true,\"cut\":false,\"fresh\":true,\"since_ms\":1,\"failed_ms\":2,"
		 "\"ramp_ms\":3,\"why\":\"refused\",\"checks\":9,\"checks_failed\":4}]}\n");
	for (size_t again = 0; again < 2; again++) {
		vec_free(&records);
		assert_int_equal(health_file_read("main", &records, &err), 0);
		assert_int_equal(records.n, 2);
		assert_int_equal(records.at[0].addr.family, 0);
		assert_int_equal(records.at[1].addr.family, 4);
		assert_int_equal(records.at[1].port, 80);
		assert_int_equal(records.at[1].health.state, BACKEND_FAILING);
		assert_true(records.at[1].health.known && records.at[1].health.fresh);
		assert_false(records.at[1].health.cut);
		assert_int_equal(records.at[1].health.ramp_ms, 3);
		assert_string_equal(records.at[1].why, "refused");
		assert_int_equal(records.at[1].counts.failed, 4);
		assert_int_equal(health_file_write("main", &records, &err), 0);
	}
	write_in("health", "{\"backends\":[{\"service\":\"web\"}]}\n");
	assert_int_equal(health_file_read("main", &records, &err), -EBADMSG);
	assert_int_equal(records.n, 0);
}

static void test_old_feed_list(void **state)
{
	CLEANUP_FREE char *path = feed_lists_path_of("main", false, "", "drop");
	CLEANUP_FEED_LISTS struct feed_lists lists = {0}, again = {0};
	struct err err = {0};

	write_in(strstr(path, "feeds/"),
		 "{\n  \"list\": \"drop\",\n  \"origin\": \"\",\n  \"note\": \"ticket\",\n"
		 "  \"url\": \"https://a.lab/l\",\n  \"allow\": 0,\n  \"to\": 1,\n  \"both\": 0,\n"
		 "  \"wide\": 0,\n  \"mask\": 1,\n  \"every_ms\": 5000,\n  \"for_ms\": 0\n}\n");
	feed_lists_read("main", &lists);
	assert_int_equal(lists.n, 1);
	assert_int_equal(feed_list_save("main", &lists.at[0], &err), 0);
	feed_lists_read("main", &again);
	assert_int_equal(again.n, 1);
	assert_string_equal(again.at[0].list, "drop");
	assert_string_equal(again.at[0].note, "ticket");
	assert_string_equal(again.at[0].url, "https://a.lab/l");
	assert_null(again.at[0].ca);
	assert_true(again.at[0].to && again.at[0].mask);
	assert_false(again.at[0].allow || again.at[0].both || again.at[0].wide);
	assert_int_equal(again.at[0].every_ms, 5000);
}

static void check_answers(uint64_t at_s, uint32_t b_ttl_s)
{
	struct refresh_name names[] = {{.name = (char *)"a.lab"}, {.name = (char *)"b.lab"}};
	struct refresh r = {.at = names, .n = 2};

	answered_read("main", &r);
	assert_int_equal(names[0].since_s, at_s);
	assert_int_equal(names[0].ttl_s, 0);
	assert_int_equal(names[1].since_s, at_s);
	assert_int_equal(names[1].ttl_s, b_ttl_s);
}

static void test_old_answers(void **state)
{
	CLEANUP_FREE char *path = answered_path_of("main");
	CLEANUP_FREE char *lines = NULL;
	struct refresh none = {0};
	struct err err = {0};
	uint64_t at_s = (uint64_t)time(NULL) - 9;

	lines = mem_printf("a.lab %llu\nb.lab %llu 300\n", (unsigned long long)at_s,
			   (unsigned long long)at_s);
	write_in("other", ""); // makes the folder
	assert_int_equal(file_replace(path, lines, strlen(lines), 0600, &err), 0);
	check_answers(at_s, 300);
	assert_int_equal(answered_note("main", &none, &err), 0);
	check_answers(at_s, 300);
	assert_int_equal(file_replace(path, "a.lab x\n", 8, 0600, &err), 0);
	check_answers(0, 0);
}

// ---- cost ---------------------------------------------------------------------------------------

// Of jansson: who allocates its values.
void json_set_alloc_funcs(void *(*allocate)(size_t size), void (*release)(void *at));

static size_t allocated;

static void *count_one(size_t size)
{
	allocated++;
	return malloc(size);
}

// The agent writes the health of up to 16384 backends in its loop.
static void test_writing_builds_no_tree(void **state)
{
	CLEANUP_VEC struct health_records records = {0}, again = {0};
	struct err err = {0};

	for (uint16_t n = 1; n <= 1000; n++)
		vec_push(&records, ((struct health_record){.service = "web", .port = n}));
	json_set_alloc_funcs(count_one, free);
	assert_int_equal(health_file_write("main", &records, &err), 0);
	assert_int_equal(allocated, 0);
	assert_int_equal(health_file_read("main", &again, &err), 0);
	assert_true(allocated > 1000);
	json_set_alloc_funcs(malloc, free);
	assert_int_equal(again.n, 1000);
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
		cmocka_unit_test_setup_teardown(test_old_health, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_feed_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_writing_builds_no_tree, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
