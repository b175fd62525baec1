// SPDX-License-Identifier: GPL-2.0-only
// Compiles a resolved policy into tables. Pure: the same input gives the same image.
#pragma once

#include <stdint.h>

#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/image.h"

struct compile_options {
	uint64_t
		seed; // of the host lines; fresh at each compile, so that a line cannot be attacked
	uint32_t hz;  // jiffies a second
	uint64_t rows_max; // bytes of rows before compile refuses; 0: 128 MB
};

// 0, or -EINVAL with errors queued in d at the place in the policy that causes them: services of a mode that is
// not supported yet, rows beyond rows_max (naming the sets with the most combinations). *ret is owned by the caller.
int compile(const struct resolved *r, const struct compile_options *options, struct diag *d,
	    struct image **ret);
