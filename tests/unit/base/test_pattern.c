// SPDX-License-Identifier: GPL-2.0-only
// Regular expressions: matches, errors, and that no text makes them take long.
#include "ctl/base/pattern.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define BODY 16384 // bytes of a hostile text

static enum pattern_result match(const char *pattern, const char *text, size_t len)
{
	enum pattern_result result;
	struct pattern *p = NULL;
	struct err err = {0};

	if (pattern_new(pattern, &p, &err))
		fail_msg("%s", err.text);
	result = pattern_match(p, text, len);
	pattern_free(p);
	return result;
}

static void test_matches(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"ok", "this is ok.", true},
		{"ok", "o k", false},
		{"", "", true},
		{"^(fine|well)$", "well", true},
		{"^(fine|well)$", "first\nwell\nlast", true},
		{"^(fine|well)$", "as well", false},
		{"ok.*ready", "ok, and ready", true},
		{"ok.*ready", "ok\nready", false},
		{"ok[^x]*ready", "ok\nready", true},
		{"(?i)OK\\s+\\d{2}\\b", "ok  42!", true},
		{"\xff\xfe", "a\xff\xfe", true}, // bytes, not characters
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++)
		if (match(cases[n].pattern, cases[n].text, strlen(cases[n].text)) !=
		    (cases[n].matches ? PATTERN_MATCHES : PATTERN_DIFFERS))
			fail_msg("'%s' and '%s'", cases[n].pattern, cases[n].text);
	assert_int_equal(match("a.b", "a\0b", 3), PATTERN_MATCHES);
	assert_int_equal(match("b", "aab", 2), PATTERN_DIFFERS); // it ends before the b
}

static void test_invalid(void **state)
{
	static const struct {
		const char *pattern, *why;
	} cases[] = {
		{"ok(", "the pattern 'ok(' is invalid: missing closing parenthesis, after 'ok('"},
		{"a[b",
		 "the pattern 'a[b' is invalid: missing terminating ] for character class, after 'a[b'"},
		{"*a", "the pattern '*a' is invalid: quantifier does not follow a repeatable item"},
		{"(*UTF)a", "using UTF is disabled by the application"},
	};
	struct pattern *p = NULL;

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct err err = {0};

		assert_int_equal(pattern_new(cases[n].pattern, &p, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[n].why));
		assert_null(p);
	}
}

// Texts of a backend that lies. Each takes from 0.05 s to years with only one of the limits of
// pattern.c.
static const struct hostile {
	const char *pattern;
	const char *repeated; // fills the text
	const char *end;      // its last bytes
} hostile[] = {
	{"ok.*ready", "ok", "y"},
	{"k(?=.*ready)y", "ok", "y"},
	{"(.*)(.*)(.*)(.*)(.*)[x]y", "ok", "y"},
	{"(o|k)*ready", "ok", "y"},
	{"((o|k)+)+ready", "ok", "y"},
	{"<[^>]*>?[^>]*ready", "<", "y"},
	{"x?[^b]{4000}[^b]{4000}cy", "a", "y"},
	{"(.{4000})b?.*\\1\\1\\1y", "a", "by"},
	{"(a?){2000}b?(?R)?y", "a", "by"},
};

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fill(const struct hostile *h, char text[BODY])
{
	size_t part = strlen(h->repeated), end = strlen(h->end);

	for (size_t i = 0; i < BODY; i++)
		text[i] = h->repeated[i % part];
	memcpy(text + BODY - end, h->end, end);
}

// The best of three, since a machine under load takes time for other things too.
static double cost(const char *pattern, const char *text)
{
	double best = 1e9;

	for (int turn = 0; turn < 3; turn++) {
		double began = milliseconds(), took;

		match(pattern, text, BODY);
		took = milliseconds() - began;
		best = took < best ? took : best;
	}
	return best;
}

static void test_time(void **state)
{
	CLEANUP_FREE char *text = mem_zalloc(BODY, 1);

	match("", "", 0); // loads the library
	for (size_t n = 0; n < ARRAY_SIZE(hostile); n++) {
		double took;

		fill(&hostile[n], text);
		assert_int_equal(match(hostile[n].pattern, text, BODY), PATTERN_TOO_LONG);
		took = cost(hostile[n].pattern, text);
		print_message("%-28s %.2f ms\n", hostile[n].pattern, took);
		if (took > 5)
			fail_msg("'%s' took %.1f ms", hostile[n].pattern, took);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
