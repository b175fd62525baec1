// SPDX-License-Identifier: GPL-2.0-only
// Which families of packets a rule can match.
#pragma once

#include <stdint.h>

#include "ctl/policy/resolved.h"

#define FAMILIES_4    1u
#define FAMILIES_6    2u
#define FAMILIES_BOTH (FAMILIES_4 | FAMILIES_6)
// By its addresses; 0: no packet.
uint32_t families_of_rule(const struct resolved *r, const struct resolved_rule *rule);
