// SPDX-License-Identifier: GPL-2.0-only
// Brings interfaces and revisions into agreement with progs[].
#include "ctl/control/recover.h"

#include <errno.h>
#include <stdio.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/control/detach_stale.h"
#include "ctl/control/lb_apply.h"
#include "ctl/control/quick.h"
#include "ctl/datapath/commit.h"

static int read_about(const struct instance *i, const struct commit_state *state,
		      char ret[REVISION_ID], struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code = state->active ? generation_read_about(i, state->active, about, err) : 0;

	if (code)
		return code;
	snprintf(ret, REVISION_ID, "%s", about->revision);
	return 0;
}

int recover_in_force(const struct instance *i, char ret[REVISION_ID], struct err *err)
{
	struct commit_state state;
	int code = commit_read(i, &state, err);

	return code ? code : read_about(i, &state, ret, err);
}

int recover_trial(const struct instance *i, struct err *err)
{
	CLEANUP_VEC struct ifnames left = {0};
	struct commit_state state;
	bool reverted = false;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if (state.expired && (code = detach_brought(i, &left, err)))
		return code;
	if ((code = commit_recover(i, &reverted, err)) || !reverted)
		return code;
	if ((code = commit_read(i, &state, err)))
		return code;
	if ((code = lb_apply_back(i, state.active, err)))
		return code;
	return detach_stale(i, state.active, &left, err);
}

static void refuse_trial(const struct instance *i, const struct commit_state *state,
			 const char *left, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_VEC struct ifnames brought = {0};
	CLEANUP_TEXT struct text names = {0};

	detach_list_brought(i, &brought);
	ifnames_text(&brought, &names);
	generation_read_about(i, state->active, about, NULL);
	if (commit_tries_interfaces(state))
		err_refused(err, "trial of %s ends in %s", text_get(&names), left);
	else
		err_refused(err, "trial by %s ends in %s", about->by[0] ? about->by : "?", left);
	err_hint(err, "weir confirm keeps it, weir rollback ends it");
}

int recover_check(const struct instance *i, struct err *err)
{
	struct commit_state state;
	struct clock now;
	num_text left;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	code = instance_clock(i, &now, err);
	if (code || !state.deadline)
		return code;
	num_format_duration_ms(clock_ms_until(&now, state.deadline), left);
	refuse_trial(i, &state, left, err);
	return -EBUSY;
}

int recover_record(const struct instance *i, struct err *err)
{
	struct commit_state state;
	char id[REVISION_ID] = "";
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if (!state.deadline && (code = read_about(i, &state, id, err)))
		return code;
	if ((code = revisions_recover(i->name, id, err)))
		return code;
	if (!state.deadline)
		quick_settle(i, NULL); // a damaged file concerns only those who change the rules
	return 0;
}
