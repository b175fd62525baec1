// SPDX-License-Identifier: GPL-2.0-only
// What the datapath tests count and print.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

struct tally {
	size_t passed, failed, skipped;
};

// One test that is being run.
struct test {
	const char *name;
	bool failed, skipped;
};

struct named_test {
	const char *name;
	void (*run)(struct test *t);
};

// Tables end with an empty line.
extern const struct named_test overlay_tests[];
extern const struct named_test commit_tests[];
extern const struct named_test history_tests[];
extern const struct named_test entry_tests[];
extern const struct named_test event_tests[];
extern const struct named_test jumbo_tests[];
extern const struct named_test transit_tests[];

// Runs those of a table whose name contains `only` (NULL: all).
void suite_run(const struct named_test *tests, const char *only, struct tally *tally);

// Prints where and why, and lets the test go on.
__attribute__((format(printf, 4, 5))) void test_fail(struct test *t, const char *file, int line,
						     const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void test_skip(struct test *t, const char *why, ...);
// "0000  00 11 22 …" to stdout, indented.
void print_hex(const uint8_t *bytes, size_t len);

// What the test needs to be made at all failed: says so and ends with status 2.
_Noreturn void test_die(const struct err *err);

#define CHECK(t, condition, ...) \
	((condition) || (test_fail(t, __FILE__, __LINE__, __VA_ARGS__), false))
