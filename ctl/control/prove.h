// SPDX-License-Identifier: GPL-2.0-only
// Proves a policy by its expect lines.
#pragma once

#include "ctl/base/err.h"
#include "ctl/control/candidate.h"

// Runs every expect line on the test program. A packet that a quick rule decides is asked once more
// of a program without quick rules, whose answer counts; if only that one holds, the line is in
// c->broken. 0, or -EINVAL with an error in c->diag for each that failed.
int prove_expects(struct candidate *c, struct err *err);
