// SPDX-License-Identifier: GPL-2.0-only
// A policy in the kernel: program and tables, loaded beside the running one; and its test program.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/image.h"

struct lb_load;
struct generation; // descriptors of one policy's program and maps

// A dynamic set the policy names. Its map belongs to every generation that names it.
struct generation_set {
	const char *name;
	uint32_t max;
};

struct generation_options {
	bool malformed_pass;
	bool conntrack; // some rule says `established`
	// A set of a name and size that generation `previous` has too is that set; one of another size gets a
	// copy of its entries; 0: all are new.
	uint32_t previous;
	const struct generation_set *sets;
	size_t n_sets; // at most POLICY_SETS_MAX, in the order of the set numbers
	// ifindexes of devices for redirect rules, by the `redirect` index of the image's rule; 0: missing.
	const uint32_t *redirects;
	size_t n_redirects;
	const struct lb_load *load; // of its services; NULL: it has none
};

struct generation_cost {
	uint32_t object;       // instructions with every feature, as compiled
	uint32_t instructions; // after the verifier removed what is not used, and inlined helpers
	uint32_t verified;     // instructions the verifier walked
	uint32_t jited_bytes;
	uint32_t balance_verified; // of the second program; 0: no services
	size_t map_bytes;
	uint64_t load_us;
};

struct generation_about_set { // a dynamic set, in the order of the set numbers
	char name[32];
	uint32_t max;
	uint8_t mask4, mask6;
	uint64_t expire_ms;  // 0: never
	uint32_t generation; // whose set it is; set by generation_read_about()
};

// Who made it, for status and history: kept beside its pins.
struct generation_about {
	char revision[16]; // "" for the empty policy
	char made_of[24];  // a sum of what its text does not say; "" until all of it is in force
	char path[256];
	char by[160];
	uint64_t at_s; // wall clock
	// Interfaces of the policy in its order; a name may end in '*' and then is a pattern.
	uint32_t n_ifaces;
	char ifaces[WEIR_IFACES][16];
	uint64_t optional; // bit: place of one that may match no device, a pattern too
	uint32_t n_sets;
	struct generation_about_set sets[POLICY_SETS_MAX];
};
// The programs of every policy, as they were compiled.
const void *generation_object(size_t *ret_size);
// Which of them a device is: the exact name, else the longest pattern; its place + 1, 0 none.
uint8_t generation_class(const struct generation_about *about, const char *device);

// Loads program and tables around the instance's shared maps (i NULL: around private ones, to prove and
// measure a policy without an instance). Nothing is pinned and no packet sees it. cost may be NULL.
// 0 or -errno with err set (the verifier's last words as hint).
int generation_load(const struct instance *i, const struct image *image,
		    const struct generation_options *options, struct generation **ret,
		    struct generation_cost *cost, struct err *err);
// The empty policy of a fresh instance; makes the instance's shared maps on the way and sets their
// descriptors in i.
int generation_load_first(struct instance *i, struct generation **ret, struct err *err);
// Pins it as INSTANCE_FOLDER/gen/NUMBER; before that it dies with the process.
int generation_pin(const char *instance_folder, struct generation *g, uint32_t number,
		   const struct generation_about *about, struct err *err);
// Marks it as complete, with a sum of what it was made from, to be compared with the next policy. 0 or -errno
// with err set.
int generation_finish(const struct instance *i, uint32_t number, const char *made_of,
		      struct err *err);
// Removes the pins again; those that cannot be removed are left to the next commit_recover().
void generation_unpin(const char *instance_folder, uint32_t number);
// From its pins.
int generation_open(const struct instance *i, uint32_t number, struct generation **ret,
		    struct err *err);
void generation_free(struct generation *g);
void generation_cleanup(struct generation **g);
#define CLEANUP_GENERATION CLEANUP(generation_cleanup)
int generation_program(const struct generation *g); // its descriptor

// Marks the rule counters that pinned generations use: ret_used[index] = 1. 0 or -errno with err set.
int generation_counters(const struct instance *i, uint8_t ret_used[WEIR_RULE_COUNTERS],
			struct err *err);

int generation_read_about(const struct instance *i, uint32_t number, struct generation_about *ret,
			  struct err *err);

// Tells the active and the previous generation that the interface with this number is this device.
int generation_introduce(const struct instance *i, uint32_t number, const char *device,
			 struct err *err);

// The interface with this number in the instance is `class` in the policy: its place there + 1, or 0.
int generation_set_iface(const struct generation *g, uint32_t number, uint8_t class,
			 struct err *err);

// A second program over the same tables that runs test packets and changes nothing (8 ms to make).
struct test_program;
int test_program_open(const struct instance *i, const struct generation *g,
		      struct test_program **ret, struct err *err);
void test_program_free(struct test_program *t);
void test_program_cleanup(struct test_program **t);
#define CLEANUP_TEST_PROGRAM CLEANUP(test_program_cleanup)

struct test_result {
	uint32_t verdict; // XDP_*
	int32_t rule;     // that decided, -1 none
	uint32_t reason;  // enum weir_reason
	uint32_t counted; // rules that counted and did not decide
	uint32_t first_counted[5];
	int32_t service;    // the packet's, -1 none
	uint32_t passed;    // with a service: the reason that let it pass
	uint32_t backend;   // its number, BACKEND_NONE
	uint32_t slot;      // of the flow, where it has a service
	uint64_t slot_word; // as common/service.h has it
	bool pinned;        // by a living pin
	uint8_t *
		packet; // that leaves, unless it is dropped; owned by the test program, valid until the next run
	size_t length;
};
// Runs one frame of at least 14 bytes. ask: iface, over, established, live.
int test_program_run(struct test_program *t, const uint8_t *frame, size_t length,
		     const struct policy_test *ask, struct test_result *ret, struct err *err);
