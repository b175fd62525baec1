// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/feed_lists.h: the command of a list, and the result of its text.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/control/feed_lists.h"

static void wants_words(const struct feed_list *l, const char *line)
{
	const char *words[FEED_LIST_WORDS];
	CLEANUP_TEXT struct text t = {0};
	feed_list_time time;
	size_t n = feed_list_words(l, "/new", time, words);

	assert_true(n <= FEED_LIST_WORDS);
	for (size_t i = 0; i < n; i++)
		text_addf(&t, "%s%s", i ? " " : "", words[i]);
	assert_string_equal(text_get(&t), line);
}

static void test_words(void **state)
{
	struct feed_list l = {.list = "drop", .origin = "", .note = ""};

	wants_words(&l, "block -f /new --sync drop");
	l = (struct feed_list){.list = "drop",
			       .origin = "ids",
			       .note = "ticket",
			       .allow = true,
			       .to = true,
			       .both = true,
			       .wide = true,
			       .mask = true,
			       .for_ms = 90000};
	wants_words(
		&l,
		"allow -f /new --sync drop --origin ids --note ticket --for 90000ms --to --both "
		"--wide --mask");
}

static void test_entries(void **state)
{
	static const struct {
		const char *text;
		uint64_t entries, for_ms;
		bool plain;
	} cases[] = {
		{"192.0.2.1\n192.0.2.2\n", 2, 0, true}, {"192.0.2.1\n192.0.2.2\n", 2, 1000, false},
		{"192.0.2.1 for 1h\n", 1, 0, false},    {"192.0.2.1\nblocked.lab\n", 2, 0, false},
		{"country DE\n", 1, 0, false},          {"", 0, 0, true},
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct feed_list l = {.for_ms = cases[n].for_ms};
		bool plain;

		assert_int_equal(
			feed_list_entries(&l, cases[n].text, strlen(cases[n].text), &plain),
			cases[n].entries);
		assert_int_equal(plain, cases[n].plain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
