// SPDX-License-Identifier: GPL-2.0-only
// Ends a trial: confirms its policy or its interfaces, or returns to the previous ones.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/control/apply.h"
#include "ctl/control/apply_notes.h"
#include "ctl/control/attachments.h"
#include "ctl/control/bringup.h"
#include "ctl/control/devices.h"
#include "ctl/control/lb_apply.h"
#include "ctl/control/nat_settle.h"
#include "ctl/control/overrides.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/lock.h"

struct trial {
	struct bringup bringup;
	struct commit_state state;
	struct generation_about about; // record of the policy that will be active
};

static void trial_close(struct trial *t)
{
	bringup_close(&t->bringup);
}

// Forgets overrides of backends that the confirmed policy does not name; a volatile one changed
// nothing on disk.
static int forget_confirmed(const struct instance *i, uint32_t generation, const char *revision,
			    struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	char current[REVISION_ID] = "";
	int code = revisions_current(i->name, current, err);

	if (code || !current[0] || strcmp(current, revision) != 0)
		return code;
	if ((code = lb_maps_open(i, generation, LB_SLOTS_USED, &l, err)))
		return code;
	return overrides_forget_unnamed(i->name, l ? lb_maps_state(l) : NULL, err);
}

// keeps: the program that will be active. ERR_REFUSED if no trial runs.
static int trial_open(const char *instance, const char *command, enum weir_prog keeps,
		      struct trial *t, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	struct instance **i = &t->bringup.instance;
	int code;

	t->bringup.lock = -1;
	if ((code = lock_take(instance, command, &t->bringup.lock, err)))
		return code;
	if ((code = instance_open(instance, i, err)))
		return code;
	if ((code = devices_sync(*i, &devices, err)))
		return code;
	if ((code = recover_record(*i, err)))
		return code;
	if ((code = commit_read(*i, &t->state, err)))
		return code;
	if (!t->state.deadline)
		return err_refused(err, "no trial is running");
	return generation_read_about(*i, keeps == PROG_ACTIVE ? t->state.active : t->state.previous,
				     &t->about, err);
}

// The interfaces, if the trial is only for interfaces.
static void note_tried(const struct trial *t, struct apply_result *ret)
{
	if (commit_tries_interfaces(&t->state))
		detach_list_brought(t->bringup.instance, &ret->tried);
}

static int refuse_expired(const struct trial *t, const struct ifnames *tried, struct err *err)
{
	CLEANUP_TEXT struct text names = {0};

	ifnames_text(tried, &names);
	if (!commit_tries_interfaces(&t->state))
		err_refused(err, "the trial has expired: the previous policy is active");
	else
		err_refused(err, "the trial has expired: %s %s detached",
			    names.len ? text_get(&names) : "what it tried",
			    tried->n > 1 ? "are" : "is");
	return -EPERM;
}

static int end_expired(struct trial *t, const struct ifnames *tried, struct err *err)
{
	bool removed;
	int code = recover_trial(t->bringup.instance, err);

	code = code ? code : refuse_expired(t, tried, err);
	if (commit_tries_interfaces(&t->state))
		bringup_remove_if_idle(&t->bringup, &removed, NULL);
	return code;
}

// For `weir restore`. How an interface was to be attached is not known any more: a generic one
// stays generic.
static void remember_tried(const struct instance *i, struct apply_result *ret)
{
	struct iface iface;
	uint32_t number;

	vec_each (&ret->tried, name) {
		char *warning;

		if (instance_find_iface(i, *name, &number, NULL) || !number ||
		    instance_iface(i, number, &iface, NULL))
			continue;
		warning = attachments_remember(
			i->name, *name, iface.mode == IFACE_GENERIC ? ATTACH_GENERIC : ATTACH_AUTO);
		if (warning)
			vec_push(&ret->warnings, warning);
	}
}

int apply_confirm(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err)
{
	CLEANUP(trial_close) struct trial t = {0};
	const struct instance *i;
	size_t freed = 0;
	int code = trial_open(instance, command, PROG_ACTIVE, &t, err);

	if (code)
		return code;
	i = t.bringup.instance;
	note_tried(&t, ret);
	if (t.state.expired)
		return end_expired(&t, &ret->tried, err);
	if ((code = commit_confirm(i, err)))
		return code;
	remember_tried(i, ret);
	snprintf(ret->revision, sizeof(ret->revision), "%s", t.about.revision);
	if ((code = revisions_recover(instance, ret->revision, err)))
		return code;
	if ((code = forget_confirmed(i, t.state.active, ret->revision, err)))
		return code;
	if ((code = nat_settle(i, &freed, err)))
		return code;
	apply_note_freed(freed, ret);
	return detach_stale(i, t.state.active, &ret->left, err);
}

int apply_abandon(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err)
{
	CLEANUP(trial_close) struct trial t = {0};
	const struct instance *i;
	bool removed;
	int code = trial_open(instance, command, PROG_PREVIOUS, &t, err);

	if (code)
		return code;
	i = t.bringup.instance;
	note_tried(&t, ret);
	if ((code = detach_brought(i, &ret->left, err)))
		return code;
	if ((code = commit_back(i, err)))
		return code;
	revisions_forget(instance, t.about.revision);
	snprintf(ret->revision, sizeof(ret->revision), "%s", t.about.revision);
	if ((code = lb_apply_back(i, t.state.previous, err)))
		return code;
	if ((code = detach_stale(i, t.state.previous, &ret->left, err)))
		return code;
	return ret->left.n ? bringup_remove_if_idle(&t.bringup, &removed, err) : 0;
}

int apply_end_expired(const char *instance, const char *command, bool *ret_ended,
		      struct apply_result *ret, struct err *err)
{
	CLEANUP(trial_close) struct trial t = {0};
	struct err why = {0};
	bool removed;
	int code = trial_open(instance, command, PROG_PREVIOUS, &t, &why);

	*ret_ended = false;
	if (code && why.kind == ERR_REFUSED && t.bringup.instance && !t.state.deadline)
		return 0;
	if (code) {
		*err = why;
		return code;
	}
	if (!t.state.expired)
		return 0;
	note_tried(&t, ret);
	if ((code = recover_trial(t.bringup.instance, err)))
		return code;
	*ret_ended = true;
	snprintf(ret->revision, sizeof(ret->revision), "%s", t.about.revision);
	return commit_tries_interfaces(&t.state) ? bringup_remove_if_idle(&t.bringup, &removed, err)
						 : 0;
}
