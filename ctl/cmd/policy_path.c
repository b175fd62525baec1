// SPDX-License-Identifier: GPL-2.0-only
// Finds the policy file of an instance, and whether it was left.
#include "ctl/cmd/policy_path.h"

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/policy_left.h"

char *policy_path(const struct context *ctx, const struct args *args)
{
	return args->words.n ? mem_strdup(args->words.at[0])
			     : mem_printf("/etc/weir/%s.weir", ctx->instance);
}

bool policy_was_left(const char *instance, const char *path)
{
	char revision[REVISION_ID], current[REVISION_ID];

	if (!policy_left(instance, path, revision, current))
		return false;
	log_notice("'%s' is not applied: it is revision %s, which revision %s has replaced", path,
		   revision, current);
	return true;
}
