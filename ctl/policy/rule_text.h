// SPDX-License-Identifier: GPL-2.0-only
// Prints a resolved rule in the syntax of the language, without names, definitions and defaults.
#pragma once

#include "ctl/base/text.h"
#include "ctl/policy/resolved.h"

// "drop from 192.0.2.0/24,@bogons to port 22,80-90 proto tcp over 10/s per source log", without its
// name. Addresses of a list are printed as values, a single set as its name. Default values are not
// printed.
void rule_text(struct text *t, const struct resolved *r, const struct resolved_rule *rule);

// Only its conditions, in the order in which they are tested: "from @slow, length 0-100, dscp 46,
// over 10/s". Adds nothing for a rule without conditions.
void rule_text_conditions(struct text *t, const struct resolved *r,
			  const struct resolved_rule *rule);
