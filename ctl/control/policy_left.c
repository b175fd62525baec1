// SPDX-License-Identifier: GPL-2.0-only
// Compares a policy file with the texts of revisions.
#include "ctl/control/policy_left.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"

#define POLICY_MAX (16u << 20)

// Is this text the policy file of a revision?
static bool is_text_of(const char *instance, const char *id, const char *text, size_t len)
{
	CLEANUP_ENVIRONMENT struct environment w = {0};
	const struct environment_file *file = NULL;
	struct revision r = {0};

	environment_replay(&w);
	if (!revisions_load(instance, id, &w, &r, NULL))
		file = environment_find_file(&w, r.path);
	revision_free(&r);
	return file && file->len == len && !memcmp(file->text, text, len);
}

bool policy_left(const char *instance, const char *path, char ret_revision[REVISION_ID],
		 char ret_current[REVISION_ID])
{
	CLEANUP_REVISIONS struct revisions list = {0};
	CLEANUP_FREE char *text = NULL;
	char current[REVISION_ID] = "";
	size_t len;

	if (revisions_current(instance, current, NULL) || !current[0] ||
	    file_read(path, POLICY_MAX, &text, &len, NULL) ||
	    is_text_of(instance, current, text, len) || revisions_list(instance, &list, NULL))
		return false;
	vec_each (&list, r)
		if (strcmp(r->id, current) != 0 && is_text_of(instance, r->id, text, len)) {
			snprintf(ret_revision, REVISION_ID, "%s", r->id);
			snprintf(ret_current, REVISION_ID, "%s", current);
			return true;
		}
	return false;
}
