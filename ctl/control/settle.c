// SPDX-License-Identifier: GPL-2.0-only
// Brings interfaces and the record of revisions in step with the slots.
#include "ctl/control/settle.h"

#include <stdio.h>

#include "ctl/base/mem.h"
#include "ctl/control/balance.h"
#include "ctl/control/leave.h"
#include "ctl/datapath/commit.h"

static int read_about(const struct instance *i, const struct commit_state *state,
		      char ret[REVISION_ID], struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code = state->active ? generation_read_about(i, state->active, about, err) : 0;

	if (!code)
		snprintf(ret, REVISION_ID, "%s", about->revision);
	return code;
}

int settle_in_force(const struct instance *i, char ret[REVISION_ID], struct err *err)
{
	struct commit_state state;
	int code = commit_read(i, &state, err);

	return code ? code : read_about(i, &state, ret, err);
}

int settle_trial(const struct instance *i, struct err *err)
{
	struct commit_state state;
	struct ifnames left = {0};
	bool reverted;
	int code = commit_settle(i, &reverted, err);

	if (!code && reverted)
		code = commit_read(i, &state, err);
	if (!code && reverted)
		code = balance_back(i, state.active, err);
	if (!code && reverted)
		code = leave_interfaces(i, state.active, &left, err);
	vec_free(&left);
	return code;
}

int settle_record(const struct instance *i, struct err *err)
{
	struct commit_state state;
	char id[REVISION_ID] = "";
	int code = commit_read(i, &state, err);

	if (!code && !state.deadline)
		code = read_about(i, &state, id, err);
	return code ? code : revisions_settle(i->name, id, err);
}
