// SPDX-License-Identifier: GPL-2.0-only
// Restores the accepted policy from its record, so that no interface is open meanwhile.
#include "ctl/control/restore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/unchanged.h"
#include "ctl/datapath/commit.h"

void restore_free(struct restore *r)
{
	candidate_free(r->candidate);
	revision_free(&r->revision);
	*r = (struct restore){0};
}

static int prepare(const char *instance, const char *id, struct restore *r, struct err *err)
{
	int code;

	r->candidate = candidate_new_replay();
	code = revisions_load(instance, id, &r->candidate->environment, &r->revision, err);
	if (code) {
		err_prefix(err, "cannot restore the accepted policy %s", id);
		if (err)
			err->kind = ERR_SYSTEM; // the name is not the operator's input
		return code;
	}
	if (candidate_compile(r->candidate, r->revision.path, NULL, 0))
		return err_stated(err, EBADMSG, "the accepted policy %s no longer compiles", id);
	return lb_apply_find_nexthops(&r->candidate->lb, r->candidate->resolved, NEXTHOP_WAIT_MS,
				      err);
}

void restore_prepare(const char *instance, struct restore *ret)
{
	char id[REVISION_ID] = "";

	*ret = (struct restore){0};
	if (!revisions_current(instance, id, NULL) && id[0] && prepare(instance, id, ret, NULL))
		restore_free(ret);
}

static int mark_complete(const struct instance *i, const struct candidate *c, uint32_t number,
			 struct err *err)
{
	sum_text sum;

	unchanged_sum(c, sum);
	return generation_finish(i, number, sum, err);
}

static int load(const struct instance *i, struct candidate *c, const struct revision *r,
		struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	uint32_t number;
	int code;

	if ((code = candidate_load(c, i, err)))
		return code;
	candidate_about(c, about);
	revision_sign(r, about);
	if ((code = commit_next_number(i, &number, err)))
		return code;
	if ((code = generation_pin(i->folder, c->generation, number, about, err)))
		return code;
	test_program_pin(c->test, i, number);
	if ((code = identities_enter(i, &c->identities, err)))
		return code;
	if ((code = commit_switch(i, c->generation, 0, err)))
		return code;
	if ((code = lb_apply_after(&c->lb, i, number, err)))
		return code;
	if ((code = mark_complete(i, c, number, err)))
		return code;
	// The second switch makes it the previous policy as well, in place of the empty one of a
	// new instance.
	return commit_switch(i, c->generation, 0, err);
}

int restore_policy(const struct instance *i, struct restore *r, char ret_revision[REVISION_ID],
		   struct err *err)
{
	char id[REVISION_ID] = "";
	int code = revisions_current(i->name, id, err);

	ret_revision[0] = '\0';
	if (code || !id[0])
		return code;
	if (strcmp(id, r->revision.id) != 0) {
		restore_free(r);
		if ((code = prepare(i->name, id, r, err)))
			return code;
	}
	if ((code = load(i, r->candidate, &r->revision, err)))
		return code;
	snprintf(ret_revision, REVISION_ID, "%s", id);
	return 0;
}
