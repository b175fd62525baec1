// SPDX-License-Identifier: GPL-2.0-only
// The table of rules: conditions, action and modifiers of each.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/compile_options.h"
#include "ctl/table/image.h"

// "edge.weir:12"; the caller frees it.
char *rules_place(const struct resolved *r, struct place place);

// Fills about.
void rules_name(const struct resolved *r, struct image *i);
// Fills rules, about, the numbers of meters, bucket lines and logs, and the fields of config about
// rules. 0, or -EINVAL with errors queued.
int rules_build(const struct resolved *r, const struct compile_options *options, struct diag *d,
		struct image *i);
