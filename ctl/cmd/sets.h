// SPDX-License-Identifier: GPL-2.0-only
// `block --set`, `unblock --set` and `list --set`: dynamic sets from the command line.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/targets.h"

// Options of block and unblock that say nothing of a set are refused beside --set. 0 or -EINVAL with err set.
int sets_check_options(const struct args *args, struct err *err);
// Adds what t names to the set until intent->until_s (the set's own expiry when that is for ever), or
// takes it out.
int sets_change(struct context *ctx, const char *name, const struct targets *t,
		const struct intent *intent, bool remove, struct err *err);
// Prints a set's addresses.
int sets_show(struct context *ctx, const char *name, struct err *err);
