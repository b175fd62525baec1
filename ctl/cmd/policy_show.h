// SPDX-License-Identifier: GPL-2.0-only
// Functions that commands about policies share: files, revisions, options, findings, costs.
#pragma once

#include "ctl/base/err.h"
#include "ctl/cmd/command.h"
#include "ctl/control/apply.h"
#include "ctl/control/revisions.h"

#define POLICY_IFACES_MAX 63

// Prints errors and warnings: to standard error with carets, or with -j under "diagnostics".
void policy_show_findings(struct context *ctx, const struct candidate *c);
// Prints the cost of the policy: rules, instructions, bytes, load time.
void policy_show_cost(struct context *ctx, const struct candidate *c);

// The notices about a policy whose short program the kernel has refused; nothing if it has not.
void policy_show_refused(const struct generation_cost *cost);
// Only the message about its test program; refused: as generation_cost.test_refused.
void policy_show_test_refused(const char *refused);

// --resolver, --resolver-timeout, and the resolv.conf of the namespace, whose name is in path.
// Of commands that read a policy file.
#define OPTION_OFFLINE                                                              \
	{                                                                           \
		.name = "offline",                                                  \
		.help = "use the copies of feeds on disk instead of fetching them", \
	}

struct policy_dns {
	struct dns_options options;
	char path[512];
};
int policy_dns(const struct context *ctx, const struct args *args, struct policy_dns *ret,
	       struct err *err);

// --confirm[=TIME] in milliseconds; 0: no trial.
int policy_trial(const struct args *args, uint64_t *ret, struct err *err);

// The revision `named`, or the current one if NULL. ERR_INPUT if no policy was accepted.
int policy_pick_revision(const char *instance, const char *named, char ret[REVISION_ID],
			 struct err *err);

// The first word, else /etc/weir/INSTANCE.weir, which may not exist. The caller frees it.
char *policy_path(const struct context *ctx, const struct args *args);
// Is the file the text of an accepted revision that is not the current one? It was rolled back, or
// replaced by another policy, and stays so until a person applies it again. A notice then names the
// revisions.
bool policy_was_replaced(const char *instance, const char *path);
