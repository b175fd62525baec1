// SPDX-License-Identifier: GPL-2.0-only
// A policy in the kernel, pinned as INSTANCE_FOLDER/gen/NUMBER.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/datapath/generation_about.h"
#include "ctl/datapath/instance.h"

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
	// answers of backends of nat and fullnat, and packets to them; a policy without has none
	GENERATION_NAT_ANSWER,
	GENERATION_NAT,
	GENERATION_NAT_ANY,
	GENERATION_NAT_ANSWER_ANY,
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
// Sets nat, nat4 and nat6 of *ret to the table of connections that a policy without an instance
// has; they belong to g. -1: it has none.
void generation_own_nat(const struct generation *g, struct instance *ret);
// Answers of nat and fullnat may leave by the device. It is not an error if it no longer exists.
int generation_reach(const struct generation *g, uint32_t ifindex, struct err *err);
// Tells all generations which device the interface with this number is.
int generation_introduce(const struct instance *i, uint32_t number, const char *device,
			 struct err *err);
