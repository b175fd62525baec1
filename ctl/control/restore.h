// SPDX-License-Identifier: GPL-2.0-only
// The accepted policy, back in a fresh instance before anything is attached.
#pragma once

#include "ctl/control/revisions.h"
#include "ctl/datapath/instance.h"

// Compiles and loads the current revision from its record and puts it into both slots. No accepted policy:
// 0 and an empty ret_revision. The caller holds the lock.
int restore_policy(const struct instance *i, char ret_revision[REVISION_ID], struct err *err);
