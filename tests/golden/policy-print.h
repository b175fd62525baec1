// SPDX-License-Identifier: GPL-2.0-only
// What a policy means, line by line: each statement with the canonical form of what it became.
#pragma once

#include <stdio.h>

#include "ctl/policy/resolved.h"

// A statement that is canonical already is one line, "LINE = STATEMENT"; another one is "LINE |
// STATEMENT" and below it "= CANONICAL". A value of another line has that line in parentheses.
void policy_print(const struct resolved *r, FILE *f);
