// SPDX-License-Identifier: GPL-2.0-only
// Use of the table of connections by a generation, as it was loaded.
#pragma once

#include <stdint.h>

#include "common/nat.h"
#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/nat_plan.h"

struct nat_kept {
	struct nat_use use[NAT_ENDS]; // by number of an end
	struct nat_wish wish;
};

// *ret NULL: the number is 0, or the generation has no service in nat or fullnat, and had none. The
// caller frees it. 0 or -errno with err set.
int nat_kept_read(const struct instance *i, uint32_t generation, struct nat_kept **ret,
		  struct err *err);
