// SPDX-License-Identifier: GPL-2.0-only
// Finds the policy file of an instance, and whether it was left.
#include "ctl/cmd/policy_path.h"

#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/revisions.h"

#define POLICY_MAX (16u << 20)

char *policy_path(const struct context *ctx, const struct args *args)
{
	return args->words.n ? mem_strdup(args->words.at[0])
			     : mem_printf("/etc/weir/%s.weir", ctx->instance);
}

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

bool policy_was_left(const char *instance, const char *path)
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
			log_notice("'%s' is not applied: it is revision %s, which revision %s has "
				   "replaced",
				   path, r->id, current);
			return true;
		}
	return false;
}
