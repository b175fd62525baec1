// SPDX-License-Identifier: GPL-2.0-only
// The datapath's answer about a packet in the words of the reference (refmatch.c).
#pragma once

#include <stdbool.h>

#include "ctl/base/text.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/test_program.h"

// Replaces the text by "VERDICT VIA".
void answer_write(const struct candidate *c, const struct test_result *r, struct text *ret);
// Are the two answers the same? The reasons for "malformed" have other names, and where the default
// passes, the reference counts neighbour discovery as passed by it.
bool answer_agrees(const char *wanted, const char *got);
