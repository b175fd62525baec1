// SPDX-License-Identifier: GPL-2.0-only
// The description of a policy in the kernel: revision, author, interfaces, sets.
#pragma once

#include <stdint.h>

#include "common/policy.h"
#include "ctl/base/err.h"
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
	uint32_t tracking;   // what its rules need of connection tracking (ctl/control/tracking.h)
	uint32_t unroutable; // families in which they ask for routes (ctl/control/unroutable.h)
	uint32_t pad;
	uint64_t unroutable_on; // bit: index of an interface on which they do
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
// Pins it in the folder of a generation. 0 or -errno with err set.
int generation_about_pin(const char *generation_folder, const struct generation_about *about,
			 struct err *err);
