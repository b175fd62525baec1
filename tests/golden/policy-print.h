// SPDX-License-Identifier: GPL-2.0-only
// Prints the meaning of a policy line by line: each statement with the canonical form of its
// result.
#pragma once

#include <stdio.h>

#include "ctl/policy/resolved.h"

// A statement that is canonical already is one line, "LINE = STATEMENT"; another one is "LINE |
// STATEMENT" and below it "= CANONICAL". A value of another line has that line in parentheses.
void policy_print(const struct resolved *r, FILE *f);
