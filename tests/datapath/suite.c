// SPDX-License-Identifier: GPL-2.0-only
// Runs tables of tests and prints what fails.
#include "tests/datapath/suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool brief;
static const char *running = "setup";

void suite_names(const char *test)
{
	running = test;
}

void suite_brief(void)
{
	brief = true;
}

size_t suite_repeats(size_t n)
{
	return brief ? (n + 3) / 4 : n;
}

void test_fail(struct test *t, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	t->failed = true;
	printf("FAIL %s (%s:%d): ", t->name, file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void test_skip(struct test *t, const char *why, ...)
{
	va_list ap;

	t->skipped = true;
	printf("skipped %s: ", t->name);
	va_start(ap, why);
	vprintf(why, ap);
	va_end(ap);
	printf("\n");
}

void print_hex(const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len; at += 16) {
		printf("     %04zx ", at);
		for (size_t n = at; n < at + 16 && n < len; n++)
			printf(" %02x", bytes[n]);
		printf("\n");
	}
}

void test_die(const struct err *err)
{
	fflush(stdout);
	fprintf(stderr, "run: %s: %s%s%s%s\n", running, err->text, err->hint[0] ? " (" : "",
		err->hint, err->hint[0] ? ")" : "");
	exit(2);
}

void suite_run(const struct named_test *tests, const char *only, struct tally *tally)
{
	for (; tests->name; tests++) {
		struct test t = {.name = tests->name};

		if (only && !strstr(tests->name, only))
			continue;
		suite_names(t.name);
		tests->run(&t);
		tally->failed += t.failed;
		tally->skipped += !t.failed && t.skipped;
		tally->passed += !t.failed && !t.skipped;
		fflush(stdout);
	}
}
