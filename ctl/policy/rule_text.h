// SPDX-License-Identifier: GPL-2.0-only
// A resolved rule as text in the syntax of the language: what is left when names, definitions and
// defaults are gone.
#pragma once

#include "ctl/base/text.h"
#include "ctl/policy/resolved.h"

// "drop from 192.0.2.0/24,@bogons to port 22,80-90 proto tcp over 10/s per source log", without its
// name. Addresses of a list are values, a set that is used alone is its name. What has its default
// value is left out.
void rule_text(struct text *t, const struct resolved *r, const struct resolved_rule *rule);

// Its conditions alone, in the order in which they are tried: "from @slow, length 0-100, dscp 46,
// over 10/s". Adds nothing for a rule without conditions.
void rule_text_conditions(struct text *t, const struct resolved *r,
			  const struct resolved_rule *rule);
