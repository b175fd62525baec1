// SPDX-License-Identifier: GPL-2.0-only
// Block entries precede quick rules: what a new `pass` therefore does not pass.
#pragma once

#include "ctl/control/apply_result.h"
#include "ctl/control/candidate.h"

// Adds a notice for each new quick rule that passes addresses of a block entry. The caller does not
// hold the lock of the instance. A failure only means that there is no notice.
void quick_note_entries(const struct candidate *c, const char *instance, struct apply_result *ret);
