// SPDX-License-Identifier: GPL-2.0-only
// A policy in the kernel, pinned as INSTANCE_FOLDER/gen/NUMBER.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/datapath/instance.h"

struct generation_about_set { // a dynamic set, in the order of the set numbers
	char name[32];
	uint32_t max;
	uint8_t mask4, mask6;
	bool count;          // the packets of each entry
	uint64_t expire_ms;  // 0: never
	uint32_t generation; // that the set belongs to; set by generation_read_about()
};

struct generation_about {
	char revision[16]; // "" for the empty policy
	// A sum of the inputs besides the policy text; "" until the whole policy is active.
	char made_of[24];
	char path[256];
	char by[160];
	uint64_t at_s;  // wall clock
	uint64_t quick; // version of the quick rules in front of it (ctl/control/quick.h)
	// Interfaces of the policy in its order; a name that ends in '*' is a pattern.
	uint32_t n_ifaces;
	char ifaces[WEIR_IFACES][16];
	uint32_t short_refused;     // 1: the kernel refuses its short program
	uint64_t optional;          // bit: index of one that may match no device, a pattern too
	uint8_t modes[WEIR_IFACES]; // enum attach_mode of each
	uint32_t n_sets;
	uint32_t tracking; // what its rules need of connection tracking (ctl/control/tracking.h)
	struct generation_about_set sets[POLICY_SETS_MAX];
};

// Which of its interfaces a device is: the exact name, else the longest pattern; its index + 1, or
// 0.
uint8_t generation_class(const struct generation_about *about, const char *device);

int generation_read_about(const struct instance *i, uint32_t number, struct generation_about *ret,
			  struct err *err);
// Stores the sum after the whole policy is active: another apply compares it to find out whether
// anything has changed. 0 or -errno with err set.
int generation_finish(const struct instance *i, uint32_t number, const char *made_of,
		      struct err *err);

struct generation; // descriptors of the programs and maps of a policy

struct generation *generation_new(void); // without any
void generation_free(struct generation *g);
void generation_cleanup(struct generation **g);
#define CLEANUP_GENERATION CLEANUP(generation_cleanup)
int generation_program(
	const struct generation *g); // the one that packets meet first: its descriptor

// The programs of a policy.
enum generation_program {
	GENERATION_SHORT,   // the common packet; a policy that it cannot decide has none
	GENERATION_GENERAL, // any packet
	GENERATION_BALANCE, // packets of services; a policy without services has none
	GENERATION_PROGRAMS,
};
// Its descriptor, or -1.
int generation_program_of(const struct generation *g, enum generation_program program);

// Pins it; before that it ends with the process.
int generation_pin(const char *instance_folder, struct generation *g, uint32_t number,
		   const struct generation_about *about, struct err *err);
// Removes it from bpffs; commit_recover() removes what cannot be removed now.
void generation_unpin(const char *instance_folder, uint32_t number);
int generation_open(const struct instance *i, uint32_t number, struct generation **ret,
		    struct err *err);

// Numbers of the generations in bpffs, in no order, whether all of their parts are pinned or not.
struct generation_numbers {
	uint32_t *at;
	size_t n, cap;
};
int generation_list(const struct instance *i, struct generation_numbers *ret, struct err *err);
void generation_numbers_free(struct generation_numbers *numbers);
#define CLEANUP_NUMBERS CLEANUP(generation_numbers_free)

// Marks the rule counters that generations in bpffs use: ret_used[index] = 1. 0 or -errno with err
// set.
int generation_counters(const struct instance *i, uint8_t ret_used[WEIR_RULE_COUNTERS],
			struct err *err);

// The interface with this number in the instance is `class` in the policy: its index there + 1, or
// 0.
int generation_set_iface(const struct generation *g, uint32_t number, uint8_t class,
			 struct err *err);
// Tells all generations which device the interface with this number is.
int generation_introduce(const struct instance *i, uint32_t number, const char *device,
			 struct err *err);
