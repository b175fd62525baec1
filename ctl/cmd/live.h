// SPDX-License-Identifier: GPL-2.0-only
// The live view of `block` and `allow`.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/entries/change.h"

// `block --live`: the targets are resolved and checked, the interfaces attached. Blocks under a
// lease, prints counters each second until a signal, then takes away what it added.
int block_live(struct context *ctx, struct entry_change *change, struct err *err);
