// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/log.c: the output on standard error, byte for byte.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

static FILE *caught;
static int real_stderr;

static void redirect(void)
{
	caught = tmpfile();
	assert_non_null(caught);
	fflush(stderr);
	real_stderr = dup(STDERR_FILENO);
	dup2(fileno(caught), STDERR_FILENO);
}

static void assert_caught(const char *want)
{
	CLEANUP(text_free) struct text got = {0};
	int c;

	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	rewind(caught);
	while ((c = fgetc(caught)) != EOF)
		text_addc(&got, (char)c);
	fclose(caught);
	assert_string_equal(text_get(&got), want);
	assert_int_equal(got.len, strlen(want));
}

static void say_all(void)
{
	log_error("e %d", 1);
	log_warning("w %s", "x");
	log_notice("n");
	log_info("i");
	log_debug("d");
}

static void test_default_level(void **state)
{
	assert_true(log_enabled(LOG_NOTICE));
	assert_false(log_enabled(LOG_INFO));
	redirect();
	say_all();
	assert_caught("weir: e 1\nweir: warning: w x\nweir: notice: n\n");
}

static void test_levels(void **state)
{
	static const char *const want[] = {
		[LOG_ERROR] = "weir: e 1\n",
		[LOG_WARNING] = "weir: e 1\nweir: warning: w x\n",
		[LOG_NOTICE] = "weir: e 1\nweir: warning: w x\nweir: notice: n\n",
		[LOG_INFO] = "weir: e 1\nweir: warning: w x\nweir: notice: n\nweir: i\n",
		[LOG_DEBUG] = "weir: e 1\nweir: warning: w x\nweir: notice: n\nweir: i\nweir: d\n",
	};

	for (enum log_level level = LOG_ERROR; level <= LOG_DEBUG; level++) {
		log_setup(level, false);
		redirect();
		say_all();
		assert_caught(want[level]);
	}
}

static void test_color(void **state)
{
	log_setup(LOG_NOTICE, true);
	redirect();
	say_all();
	log_setup(LOG_NOTICE, false);
	assert_caught("\033[1;31mweir:\033[0m e 1\nweir: \033[1;35mwarning:\033[0m w x\n"
		      "weir: \033[1mnotice:\033[0m n\n");
}

static void test_does_not_steer_the_terminal(void **state)
{
	redirect();
	log_error("name '%s'", "\033]0;title\a\r\x7f\x9b");
	assert_caught("weir: name '?]0;title???"
		      "?'\n" /* in one piece it would be a trigraph */);
}

static void test_lines(void **state)
{
	log_setup(LOG_INFO, false);
	redirect();
	log_info("one\n\ttwo\n\nthree");
	log_info("ended\n");
	log_error("%s", "");
	log_error("a path\nweir: all is well");
	assert_caught("weir: one\n\ttwo\n\nthree\nweir: ended\nweir: \n"
		      "weir: a path?weir: all is well\n");
}

static void test_for_a_client(void **state)
{
	log_setup(LOG_NOTICE, false);
	log_for("api");
	redirect();
	say_all();
	log_for("");
	assert_caught("weir: api: e 1\nweir: warning: api: w x\nweir: notice: api: n\n");
}

static void test_long(void **state)
{
	static char text[100000], want[100010];

	memset(text, 'x', sizeof(text) - 1);
	snprintf(want, sizeof(want), "weir: %s\n", text);
	redirect();
	log_error("%s", text);
	assert_caught(want);
}

// Last: standard error leads to the journal from then on. Each line has a priority of its own.
static void test_journal(void **state)
{
	log_setup(LOG_DEBUG, true);
	log_to_journal();
	redirect();
	say_all();
	log_info("one\ntwo\n");
	assert_caught("<3>e 1\n<4>w x\n<5>n\n<6>i\n<7>d\n<6>one\n<6>two\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_level), // first: before any log_setup
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_color),
		cmocka_unit_test(test_does_not_steer_the_terminal),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_for_a_client),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
