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
