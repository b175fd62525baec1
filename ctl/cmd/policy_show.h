// SPDX-License-Identifier: GPL-2.0-only
// Shared by check and apply: findings of a candidate, options that select names and devices.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/apply.h"

#define POLICY_IFACES_MAX 63

// Errors and warnings: to standard error as text with carets, under "diagnostics" with -j.
void policy_show_findings(struct context *ctx, const struct candidate *c);
// What the policy costs: rules, instructions, bytes, load time.
void policy_show_cost(struct context *ctx, const struct candidate *c);

// --resolver, --resolver-timeout, and the namespace's resolv.conf. path: room for its name.
struct policy_dns {
	struct dns_options options;
	char path[512];
};
int policy_dns(const struct context *ctx, const struct args *args, struct policy_dns *ret,
	       struct err *err);

// --confirm[=TIME] in milliseconds; 0: not on trial.
int policy_trial(const struct args *args, uint64_t *ret, struct err *err);
