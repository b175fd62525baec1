// SPDX-License-Identifier: GPL-2.0-only
// The resolved form as text: every value, in a stable order.
#pragma once

#include <stdio.h>

#include "ctl/policy/resolved.h"

void policy_dump(const struct resolved *r, FILE *f);
