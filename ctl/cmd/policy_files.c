// SPDX-License-Identifier: GPL-2.0-only
// Finds the revisions and files that commands name.
#include "ctl/cmd/policy_files.h"

#include <stdio.h>
#include <string.h>

int policy_pick_revision(const char *instance, const char *named, char ret[REVISION_ID],
			 struct err *err)
{
	int code = 0;

	if (named)
		snprintf(ret, REVISION_ID, "%s", named);
	else
		code = revisions_current(instance, ret, err);
	if (code || ret[0])
		return code;
	return err_input(err, "no policy is accepted in instance '%s'", instance);
}
