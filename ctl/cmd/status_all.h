// SPDX-License-Identifier: GPL-2.0-only
// weir status --all: the instances of this machine, one after the other.
#pragma once

#include "ctl/cmd/command.h"

// Shows ctx->instance; adds nothing to ret_alarms where it fails.
typedef int status_show(struct context *ctx, const struct args *args, size_t *ret_alarms,
			struct err *err);

// In the order of their names, each in its network namespace. One that cannot be shown is an alarm
// with the reason. 0, or -errno with err set: there is no instance.
int status_all(struct context *ctx, const struct args *args, status_show *show, size_t *ret_alarms,
	       struct err *err);
