// SPDX-License-Identifier: GPL-2.0-only
// What the items of lists are: a domain for each kind of list.
#pragma once

#include "ctl/policy/eval.h"
#include "ctl/policy/rule_fields.h"

// Those of the fields of rules, and the rest.
#define DOMAIN_OF(symbol, member, form, name, ...) extern const struct domain domain_##name;
RULE_FIELDS(DOMAIN_OF)
extern const struct domain domain_define, domain_code;
