// SPDX-License-Identifier: GPL-2.0-only
// A second program over the tables of a generation, which runs test packets and changes nothing.
//
// It takes 8 ms to make, and 30 on other machines. So the test program of an active policy is
// pinned as gen/N/test, where read-only commands find it: its programs, the array by which they are
// linked, and its answer, which the commands use in turn.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/datapath/generation.h"

struct test_program;
// i NULL: of a generation without an instance. 0 or -errno with err set.
int test_program_open(const struct instance *i, const struct generation *g,
		      struct test_program **ret, struct err *err);
// Pins it below a generation that is pinned. It is not needed: a failure leaves nothing.
void test_program_pin(const struct test_program *t, const struct instance *i, uint32_t generation);
// The one that is pinned. 0; -ENOENT: none is; or -errno with err set.
int test_program_find(const struct instance *i, uint32_t generation, struct test_program **ret,
		      struct err *err);
// Why the kernel refuses the short program as a test program, so that only the general one answers;
// "": it does not.
const char *test_program_refused(const struct test_program *t);
// Has its policy a rule with a MAC address? Of one that test_program_open() has made.
bool test_program_asks_mac(const struct test_program *t);
void test_program_free(struct test_program *t);
void test_program_cleanup(struct test_program **t);
#define CLEANUP_TEST_PROGRAM CLEANUP(test_program_cleanup)

struct test_result {
	uint32_t verdict; // XDP_*
	int32_t rule;     // that decided, -1: none
	uint32_t reason;  // enum weir_reason
	uint32_t counted; // rules that counted without deciding
	uint32_t first_counted[5];
	int32_t service;    // the packet's, -1: none
	uint32_t passed;    // with a service: the reason why the policy passed it
	uint32_t backend;   // its number, or BACKEND_NONE
	uint32_t slot;      // the flow's, if it has a service
	uint64_t slot_word; // see common/service.h
	bool pinned;        // by a living pin
	bool general;       // the general program has seen it
	// The packet as sent, unless it is dropped; owned by the test program, valid until the next
	// run.
	uint8_t *packet;
	size_t length;
};
// Runs one frame of at least 14 bytes. ask: iface, over, established, live.
int test_program_run(struct test_program *t, const uint8_t *frame, size_t length,
		     const struct policy_test *ask, struct test_result *ret, struct err *err);
