// SPDX-License-Identifier: GPL-2.0-only
// `block --set`, `unblock --set` and `list --set`: dynamic sets from the command line.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/entries/targets.h"

// Refuses options of block and unblock that cannot be combined with --set. Returns 0, or -EINVAL
// with err set.
int sets_check_options(const struct args *args, struct err *err);
// Adds the targets to the set, or removes them. They expire at intent->until_s, or, if that is
// RECORD_NEVER, after the default time of the set.
int sets_change(struct context *ctx, const char *name, const struct targets *t,
		const struct intent *intent, bool remove, struct err *err);
// Prints a set's addresses.
int sets_show(struct context *ctx, const char *name, struct err *err);
