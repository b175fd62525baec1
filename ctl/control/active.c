// SPDX-License-Identifier: GPL-2.0-only
// Finds the revision of the active policy and loads its record.
#include "ctl/control/active.h"

#include <errno.h>

#include "ctl/base/mem.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"

static int load_part(const char *instance, const char *id, enum active_part part,
		     struct environment *e, struct revision *ret, struct err *err)
{
	return part == ACTIVE_ALL
		       ? revisions_load(instance, id, e, ret, err)
		       : revisions_load_known(instance, id, part == ACTIVE_KNOWN, e, ret, err);
}

// The active policy was recorded when it was applied: a missing record is a fault of the system,
// not of the caller.
static int load_record(const char *instance, const struct generation_about *about,
		       enum active_part part, struct environment *e, struct revision *ret,
		       struct err *err)
{
	int code = load_part(instance, about->revision, part, e, ret, err);

	if (code != -ENOENT)
		return code;
	err_input(err, "the record of revision %s is missing: its rules have no names",
		  about->revision);
	err_hint(err, "weir apply %s writes it again", about->path);
	if (err)
		err->kind = ERR_SYSTEM;
	return -ENODATA;
}

int active_record(const struct instance *i, enum active_part part, struct candidate *c,
		  struct generation_about *ret, struct err *err)
{
	CLEANUP(revision_free) struct revision revision = {0};
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if ((code = generation_read_about(i, state.in_force, ret, err)))
		return code;
	if (!ret->revision[0])
		return -ENOENT;
	return load_record(i->name, ret, part, &c->environment, &revision, err);
}

int active_broken(const struct generation_about *about, struct err *err)
{
	return err_stated(err, EBADMSG, "the record of revision %s does not compile",
			  about->revision);
}
