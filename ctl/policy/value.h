// SPDX-License-Identifier: GPL-2.0-only
// Lists of words as numbers: what a field makes of its list. Each queues its errors.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/policy/ast.h"
#include "ctl/policy/eval.h"
#include "ctl/policy/ranges.h"

// Each evaluates a list: 0, or -EINVAL with errors queued. Values are sorted; no value is an error.
int value_ranges(struct value *v, const struct domain *domain, const struct ast_list *list,
		 struct ranges *ret);
// The same as bits, of domains up to 255.
int value_bits(struct value *v, const struct domain *domain, const struct ast_list *list,
	       uint64_t ret[4]);
int value_flags(struct value *v, const struct ast_list *set, const struct ast_list *mask,
		uint8_t *ret_set, uint8_t *ret_mask);
// families: a bit 1 << 4, 1 << 6 for those the rule may have; ret_families: those it has. `given`:
// the rule names its protocols. Sorted lists of types for each family.
int value_types(struct value *v, const struct ast_list *list, bool given, unsigned families,
		struct ranges *ret4, struct ranges *ret6, unsigned *ret_families);
