// SPDX-License-Identifier: GPL-2.0-only
// A resolved rule in the syntax of the language, without names, definitions and defaults.
#pragma once

#include "ctl/base/text.h"
#include "ctl/policy/resolved.h"

// "drop from 192.0.2.0/24,@bogons to port 22,80-90 proto tcp over 10/s per source log", without its
// name.
void print_whole_rule(struct text *t, const struct resolved *r, const struct resolved_rule *rule);
