// SPDX-License-Identifier: GPL-2.0-only
// Counts and prints the results of the datapath tests.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

struct tally {
	size_t passed, failed, skipped;
};

// A running test.
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
extern const struct named_test lines_tests[];
extern const struct named_test history_tests[];
extern const struct named_test entry_tests[];
extern const struct named_test event_tests[];
extern const struct named_test log_tests[];
extern const struct named_test sample_tests[];
extern const struct named_test capture_tests[];
extern const struct named_test jumbo_tests[];
extern const struct named_test transit_tests[];
extern const struct named_test program_tests[];
extern const struct named_test field_tests[];
extern const struct named_test nat_tests[];
extern const struct named_test nat_maps_tests[];
extern const struct named_test nat_policy_tests[];
extern const struct named_test nat_any_tests[];
extern const struct named_test nat_peers_tests[];

// Runs the tests of a table whose names contain `only` (NULL: all).
void suite_run(const struct named_test *tests, const char *only, struct tally *tally);

// For an emulated machine: a quarter of the repetitions.
void suite_brief(void);
size_t suite_repeats(size_t n);

// Prints where and why; the test continues.
__attribute__((format(printf, 4, 5))) void test_fail(struct test *t, const char *file, int line,
						     const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void test_skip(struct test *t, const char *why, ...);
// "0000  00 11 22 …" to stdout, indented.
void print_hex(const uint8_t *bytes, size_t len);

// The test that test_die() names from now on.
void suite_names(const char *test);
// The setup of the test failed: prints why and exits with status 2.
_Noreturn void test_die(const struct err *err);

#define CHECK(t, condition, ...) \
	((condition) || (test_fail(t, __FILE__, __LINE__, __VA_ARGS__), false))
