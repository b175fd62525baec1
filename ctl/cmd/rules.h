// SPDX-License-Identifier: GPL-2.0-only
// The rules of the active policy with their counters.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/instance.h"

// The policy in force, compiled again from its record. 0; -ENOENT without err set: no policy is in force; else
// -errno with err set. The caller frees it.
int rules_load(const struct instance *i, struct candidate **ret, struct err *err);
// A table under "rules": place, rule, packets, bytes. Nothing when no policy is in force.
int rules_show(struct context *ctx, const struct instance *i, struct err *err);
