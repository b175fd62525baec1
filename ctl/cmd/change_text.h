// SPDX-License-Identifier: GPL-2.0-only
// The result of a change in words.
#pragma once

#include "ctl/base/text.h"
#include "ctl/control/changelog_line.h"

// "done, 3 added (12 changes)", "refused: a trial is running"
void change_result(struct text *t, const struct changelog_change *c);
