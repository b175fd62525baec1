// SPDX-License-Identifier: GPL-2.0-only
// Compares the services of a candidate and of the active policy.
#include "ctl/control/vips.h"

#include <errno.h>
#include <string.h>

#include "ctl/control/recover.h"
#include "ctl/control/revisions.h"
#include "ctl/policy/resolve.h"

// A service that continues under its name does not conflict with itself.
static int compare(struct candidate *c, const struct resolved *before)
{
	const struct resolved *after = c->resolved;
	int code = 0;

	for (size_t n = 0; n < after->n_services; n++)
		for (size_t b = 0; b < before->n_services; b++) {
			const struct resolved_service *is = &after->services[n];
			const struct resolved_service *was = &before->services[b];

			if (!strcmp(is->name, was->name) ||
			    !resolved_services_meet(after, is, before, was))
				continue;
			diag_error(c->diag, is->at, "--force moves every connection to it",
				   "service '%s' takes an address and port of the running service "
				   "'%s'",
				   is->name, was->name);
			code = -EINVAL;
		}
	return code;
}

int vips_check(struct candidate *c, const struct instance *i, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *before = candidate_new_replay();
	CLEANUP(revision_free) struct revision revision = {0};
	char id[REVISION_ID] = "";
	int code = c->lb.running ? recover_in_force(i, id, err) : 0;

	if (code || !id[0] || revisions_load(i->name, id, &before->environment, &revision, NULL))
		return code;
	before->resolved =
		policy_load(revision.path, &before->environment.env, NULL, 0, before->diag);
	if (before->resolved && compare(c, before->resolved))
		code = err_refused(err, "connections would move; nothing was changed");
	return code;
}
