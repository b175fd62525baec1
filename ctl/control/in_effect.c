// SPDX-License-Identifier: GPL-2.0-only
// Asks the kernel which policy is active, and the state folder for its record.
#include "ctl/control/in_effect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/instance.h"

struct in_effect *in_effect_new(void)
{
	struct in_effect *e = mem_new(struct in_effect);

	environment_replay(&e->record);
	return e;
}

void in_effect_cleanup(struct in_effect **e)
{
	if (!*e)
		return;
	environment_free(&(*e)->record);
	revision_free(&(*e)->revision);
	free(*e);
}

int in_effect_find(const char *instance, struct in_effect *e, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	struct commit_state state;
	int code = instance_open(instance, &i, err);

	if (code)
		return code;
	if ((code = commit_read(i, &state, err)))
		return code;
	e->trial = state.deadline;
	if (e->trial || !state.active)
		return 0;
	if ((code = generation_read_about(i, state.active, &e->about, err)))
		return code;
	if (!revisions_has(instance, e->about.revision))
		e->about.revision[0] = '\0'; // `weir status` has an alarm
	return 0;
}

int in_effect_load(const char *instance, struct in_effect *e, struct err *err)
{
	return revisions_load(instance, e->about.revision, &e->record, &e->revision, err);
}

// True if an interface of the policy is not in its text.
static bool has_others(const struct candidate *c, const struct generation_about *about)
{
	CLEANUP_FREE struct generation_about *written = mem_new(struct generation_about);

	candidate_about(c, written);
	return written->n_ifaces != about->n_ifaces ||
	       memcmp(written->ifaces, about->ifaces, sizeof(written->ifaces)) != 0;
}

int in_effect_ifaces(const char *instance, const char *revision,
		     const struct generation_about *about, const char **ret, size_t *ret_n,
		     struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP(revision_free) struct revision r = {0};
	int code = revisions_load(instance, revision, &c->environment, &r, err);

	*ret_n = 0;
	if (code)
		return code;
	if (candidate_resolve(c, r.path, NULL, 0))
		return err_stated(err, EBADMSG, "the record of revision %s no longer compiles",
				  r.id);
	if (!has_others(c, about))
		return 0;
	for (; *ret_n < about->n_ifaces; ++*ret_n)
		ret[*ret_n] = about->ifaces[*ret_n];
	return 0;
}
