// SPDX-License-Identifier: GPL-2.0-only
// Whether the policy file of an instance was left: its text is an older revision's.
#pragma once

#include <stdbool.h>

#include "ctl/control/revisions.h"

// Is the file the text of an accepted revision that is not the current one? It was rolled back, or
// replaced by another policy, and stays so until a person applies it again. The files of revisions
// are not read.
bool policy_left(const char *instance, const char *path, char ret_revision[REVISION_ID],
		 char ret_current[REVISION_ID]);
