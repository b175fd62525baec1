// SPDX-License-Identifier: GPL-2.0-only
// Domains: the items of each kind of list.
#pragma once

#include "ctl/policy/eval.h"
#include "ctl/policy/rule_fields.h"

// The domains of the fields of rules, then the others.
#define DOMAIN_OF(symbol, member, form, name, ...) extern const struct domain domain_##name;
RULE_FIELDS(DOMAIN_OF)
extern const struct domain domain_define, domain_code, domain_pair;

// The elements of a set, by its kind.
extern const struct domain *const set_domains[AST_SET_KINDS];
