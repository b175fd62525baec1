// SPDX-License-Identifier: GPL-2.0-only
// Compares the sum of a policy file with those of revisions.
#include "ctl/control/policy_left.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"

#define POLICY_MAX (16u << 20)

bool policy_left(const char *instance, const char *path, char ret_revision[REVISION_ID],
		 char ret_current[REVISION_ID])
{
	CLEANUP_REVISIONS struct revisions list = {0};
	CLEANUP_FREE char *text = NULL;
	const struct revision *same = NULL; // the newest other one with this text
	char current[REVISION_ID] = "";
	sum_text sum;
	size_t len;

	if (revisions_current(instance, current, NULL) || !current[0] ||
	    file_read(path, POLICY_MAX, &text, &len, NULL) || revisions_list(instance, &list, NULL))
		return false;
	sum_of(text, len, sum);
	vec_each (&list, r) {
		if (strcmp(r->sum, sum) != 0)
			continue;
		if (!strcmp(r->id, current))
			return false;
		same = same ? same : r;
	}
	if (!same)
		return false;
	snprintf(ret_revision, REVISION_ID, "%s", same->id);
	snprintf(ret_current, REVISION_ID, "%s", current);
	return true;
}
