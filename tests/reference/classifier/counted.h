// SPDX-License-Identifier: GPL-2.0-only
// The program that packets meet, beside the test program: its verdicts, and its counters of rules
// and reasons.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/candidate.h"

struct counted;

// Gives each rule a counter of its own; between candidate_compile() and candidate_load().
void counted_number(struct candidate *c);
// Does only the packet decide the counters? Not if rates, the past or a device matter.
bool counted_suits(const struct candidate *c);
// Exits with status 2 if the maps cannot be used. The generation outlives it.
struct counted *counted_new(const struct candidate *c, const struct generation *g);
void counted_free(struct counted *c);
// Sends a packet that the test program has answered. NULL, or the error of the verdict.
const char *counted_send(struct counted *c, const uint8_t *frame, size_t length,
			 const struct policy_test *ask, const struct test_result *tested);
// Compares the counters with all answers so far; prints and counts those that differ.
size_t counted_check(const struct counted *c, const char *name);
// Do both have counted the same bytes?
bool counted_equal(const struct counted *c, const struct counted *other);
