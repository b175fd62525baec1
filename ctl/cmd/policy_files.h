// SPDX-License-Identifier: GPL-2.0-only
// Revisions and files that commands name.
#pragma once

#include "ctl/base/err.h"
#include "ctl/control/revisions.h"

// The revision that was named, or the current one. ERR_INPUT when there is none.
int policy_pick_revision(const char *instance, const char *named, char ret[REVISION_ID],
			 struct err *err);
