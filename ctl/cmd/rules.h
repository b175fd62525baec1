// SPDX-License-Identifier: GPL-2.0-only
// The rules of the policy in force with their counters.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/datapath/instance.h"

// A table under "rules": place, rule, packets, bytes. Nothing when no policy is in force.
int rules_show(struct context *ctx, const struct instance *i, struct err *err);
// The identity of the rule whose counters are this row, for events; "rule N" when it is not known. The
// result is owned by the caller.
char *rules_name(const struct instance *i, uint32_t row);
