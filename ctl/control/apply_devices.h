// SPDX-License-Identifier: GPL-2.0-only
// The devices that a policy names: whether they exist, show VLAN tags, and carry Weir's program.
#pragma once

#include "ctl/control/apply_result.h"
#include "ctl/control/candidate.h"
#include "ctl/net/link.h"

struct policy_device {
	struct link link;
	uint8_t class; // number of the interface in the policy + 1
	uint8_t mode;  // enum attach_mode
};
struct policy_devices {
	struct policy_device *at;
	size_t n, cap;
};

// Fills *ret with the devices that the policy names, in the order of the kernel's list. Optional
// interfaces and patterns without a device go to result->absent. The caller frees *ret with
// vec_free. 0 or -errno with err set.
int apply_devices_find(const struct candidate *c, struct policy_devices *ret,
		       struct apply_result *result, struct err *err);
// The attached devices on which the policy is active, for a change of quick rules. The caller frees
// *ret with vec_free.
void apply_devices_attached(const struct candidate *c, const struct instance *i,
			    struct policy_devices *ret);
// Refuses rules with 'vlan' that the command brings (candidate_brings) on devices that remove tags
// before XDP; --force skips the check. 0 or -errno with err set.
int apply_devices_check_tags(const struct candidate *c, const struct apply_options *o,
			     const struct policy_devices *d, struct apply_result *result,
			     struct err *err);
// The devices that do not run Weir's program. The caller frees *ret with vec_free.
void apply_devices_missing(const struct instance *i, const struct policy_devices *d,
			   struct policy_devices *ret);
