// SPDX-License-Identifier: GPL-2.0-only
// On which interfaces of an instance does a policy apply? As its program sees it, not by names.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"

struct reach {
	uint32_t generation; // that was read
	bool empty;          // no rule, no service, default pass: it applies to no interface
	bool named;          // it names interfaces; else it applies to all
	struct policy_ifclass classes;
	uint64_t over; // bits of interfaces whose trial has expired: everything passes there
};

// The reach of a generation in bpffs. 0 or -errno with err set.
int reach_read(const struct instance *i, uint32_t generation, struct reach *ret, struct err *err);
// The reach of the policy that packets meet now.
int reach_in_force(const struct instance *i, struct reach *ret, struct err *err);

// What applies on the interface with this number in the instance, if our program is attached?
enum reach_what {
	REACH_POLICY, // and entries
	REACH_ENTRIES,
	REACH_NOTHING, // its trial has expired
};
enum reach_what reach_what(const struct reach *r, uint32_t number);
bool reach_holds(const struct reach *r, uint32_t number); // the policy does

// Does the policy still treat the interface by the present name of its device? Not if the device
// was renamed after it was attached, or after the policy was applied. about: of the same
// generation.
bool reach_is_by_name(const struct reach *r, const struct generation_about *about, uint32_t number,
		      const char *device);
