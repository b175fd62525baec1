// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the policy file of `weir run FILE`.
#include "ctl/agent/applies.h"
#include "ctl/agent/files.h"

static int start(struct agent *a, struct err *err)
{
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	json_set(fields, "path", files_have_policy(a) ? json_string(a->policy) : json_nothing());
	json_set(fields, "applies", applies_report(a));
	trouble_report(&a->refused, NULL, problems);
}

const struct agent_part agent_policy = {
	.name = "policy",
	.start = start,
	.report = report,
};
