// SPDX-License-Identifier: GPL-2.0-only
// Compiles a resolved policy into tables. Pure: the same input gives the same image.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/compile_options.h"
#include "ctl/table/image.h"

// 0, or -EINVAL with errors queued in d at the location in the policy that causes them, such as
// rows beyond rows_max (naming the sets with the most combinations). *ret is owned by the caller.
int compile(const struct resolved *r, const struct compile_options *options, struct diag *d,
	    struct image **ret);

// Only what rules and services are called and where they are written, without tables. Owned by the
// caller.
struct image *compile_names(const struct resolved *r);
