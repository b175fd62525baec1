// SPDX-License-Identifier: GPL-2.0-only
// Prints fields of a resolved rule in the syntax of the language.
#pragma once

#include "ctl/base/text.h"
#include "ctl/policy/resolved.h"

// A field of the rule with its keyword, if it has one: "from 192.0.2.0/24,@bogons", "over 10/s per
// source". Addresses of a list are printed as values, a single set as its name. Default values are
// not printed.
void rule_text_field(struct text *t, const struct resolved *r, const struct resolved_rule *rule,
		     size_t field);

// The conditions of a rule, in the order in which they are tested: "from @slow, length 0-100, dscp 46,
// over 10/s". Adds nothing for a rule without conditions.
void rule_text_conditions(struct text *t, const struct resolved *r,
			  const struct resolved_rule *rule);
