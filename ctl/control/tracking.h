// SPDX-License-Identifier: GPL-2.0-only
// Which rules with `established` or `not established` fail while connection tracking is off.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/policy/resolved.h"

// The needs of a rule, or of a whole policy: CONNTRACK_4 and CONNTRACK_6, the families of its rules
// with `not established`, and, shifted by TRACKING_PLAIN, those of its rules with `established`.
#define TRACKING_PLAIN 2
uint32_t tracking_of_rule(const struct resolved *r, size_t number);
uint32_t tracking_of(const struct resolved *r);
// off: of conntrack_off(). While tracking is off in one family, `not established` matches each of
// its packets of TCP and UDP; `established` fails if it is off in all families of the rules.
bool tracking_fails(uint32_t needs, uint32_t off);
// The same, and asks conntrack_off() itself if anything is needed.
bool tracking_fails_now(uint32_t needs);
