// SPDX-License-Identifier: GPL-2.0-only
// The ICMP types of a list, for each family.
#pragma once

#include <stdbool.h>

#include "ctl/policy/ast.h"
#include "ctl/policy/eval.h"
#include "ctl/policy/ranges.h"

// 0, or -EINVAL with errors queued.
// families: a bit 1 << 4, 1 << 6 for those the rule may have; ret_families: those it has. `given`:
// the rule names its protocols. Sorted lists of types for each family.
int value_types(struct value *v, const struct ast_list *list, bool given, unsigned families,
		struct ranges *ret4, struct ranges *ret6, unsigned *ret_families);
