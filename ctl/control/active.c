// SPDX-License-Identifier: GPL-2.0-only
// The active policy, as the kernel and the state folder have it: its record, its interfaces, and
// whether a policy file is its text.
#include "ctl/control/active.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/control/candidate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/instance.h"

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
	if ((code = quick_read_version(i->name, ret->quick, &c->quick, err)))
		return code;
	if (!ret->revision[0] && !c->quick.n)
		return -ENOENT;
	if (ret->revision[0])
		return load_record(i->name, ret, part, &c->environment, &revision, err);
	snprintf(ret->path, sizeof(ret->path), "%s", candidate_no_policy(c));
	return 0;
}

int active_broken(const struct generation_about *about, struct err *err)
{
	return err_stated(err, EBADMSG, "the record of revision %s does not compile",
			  about->revision);
}

static int load(const struct instance *i, enum active_part part, struct candidate **ret,
		struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code = active_record(i, part, c, about, err);

	if (code)
		return code;
	if (candidate_name(c, about->path, NULL, 0))
		return active_broken(about, err);
	*ret = TAKE_PTR(c);
	return 0;
}

int active_rules(const struct instance *i, bool addresses, struct candidate **ret, struct err *err)
{
	struct err why = {0};
	int code = load(i, addresses ? ACTIVE_KNOWN : ACTIVE_NAMES, ret, &why);

	if (code == -EBADMSG) // where the record has not all that it could have, the texts have it
		return load(i, ACTIVE_ALL, ret, err);
	if (code && err)
		*err = why;
	return code;
}

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

#define POLICY_MAX (16u << 20)

bool revision_was_replaced(const char *instance, const char *path, char ret_revision[REVISION_ID],
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
