// SPDX-License-Identifier: GPL-2.0-only
// Finds the revision that a command names.
#pragma once

#include "ctl/base/err.h"
#include "ctl/control/revisions.h"

// The revision `named`, or the current one if NULL. ERR_INPUT if no policy was accepted.
int policy_pick_revision(const char *instance, const char *named, char ret[REVISION_ID],
			 struct err *err);
