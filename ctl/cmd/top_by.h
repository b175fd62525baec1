// SPDX-License-Identifier: GPL-2.0-only
// weir top --by: who sends, and what, from samples of all packets.
#pragma once

#include "ctl/cmd/command.h"

int top_by_run(struct context *ctx, const struct args *args, struct err *err);
