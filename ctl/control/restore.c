// SPDX-License-Identifier: GPL-2.0-only
// Brings the accepted policy back from its record, so that no interface is open for a moment.
#include "ctl/control/restore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/commit.h"

static int load(const struct instance *i, struct candidate *c, const struct revision *r,
		struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	uint32_t number;
	int code;

	if (candidate_compile(c, r->path, NULL, 0))
		return err_system(err, EBADMSG, "the accepted policy %s does not compile any more",
				  r->id);
	if ((code = balance_find_hops(&c->balance, c->resolved, NEXTHOP_WAIT_MS, err)))
		return code;
	candidate_about(c, about);
	revision_sign(r, about);
	code = candidate_load(c, i, err);
	if (!code)
		code = commit_next_number(i, &number, err);
	if (!code)
		code = generation_pin(i->folder, c->generation, number, about, err);
	if (!code)
		code = identities_enter(i, &c->identities, err);
	if (!code)
		code = commit_switch(i, c->generation, 0, err);
	if (!code)
		code = balance_after(&c->balance, i, number, err);
	// Twice: the empty policy of the fresh instance is nothing to go back to.
	return code ? code : commit_switch(i, c->generation, 0, err);
}

int restore_policy(const struct instance *i, char ret_revision[REVISION_ID], struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	struct revision revision = {0};
	char id[REVISION_ID] = "";
	int code = revisions_current(i->name, id, err);

	ret_revision[0] = '\0';
	if (code || !id[0])
		return code;
	code = revisions_load(i->name, id, &c->world, &revision, err);
	if (code) {
		err_prefix(err, "the accepted policy %s cannot be brought back", id);
		if (err)
			err->kind = ERR_SYSTEM; // nobody typed its name
	}
	if (!code)
		code = load(i, c, &revision, err);
	if (!code)
		snprintf(ret_revision, REVISION_ID, "%s", id);
	revision_free(&revision);
	return code;
}
