// SPDX-License-Identifier: GPL-2.0-only
// The conditions of a rule as text, for dumps of the tables.
#pragma once

#include <stdio.h>

#include "common/policy.h"

void rules_dump_conditions(const struct policy_rule *rule, FILE *f);
