// SPDX-License-Identifier: GPL-2.0-only
// Finds the revision that a command names.
#include "ctl/cmd/policy_files.h"

#include <stdio.h>
#include <string.h>

int policy_pick_revision(const char *instance, const char *named, char ret[REVISION_ID],
			 struct err *err)
{
	int code;

	if (named)
		snprintf(ret, REVISION_ID, "%s", named);
	else if ((code = revisions_current(instance, ret, err)))
		return code;
	return ret[0] ? 0 : err_input(err, "no accepted policy in instance '%s'", instance);
}
