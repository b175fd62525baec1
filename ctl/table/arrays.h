// SPDX-License-Identifier: GPL-2.0-only
// The flat arrays of an image while they grow.
#pragma once

#include "common/policy.h"
#include "ctl/base/vec.h"

struct table_arrays {
	VEC(__u32) fields;
	VEC(struct policy_node) nodes;
	VEC(struct policy_line4) lines; // of either kind
};
