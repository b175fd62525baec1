// SPDX-License-Identifier: GPL-2.0-only
// The tables of weir stats by owner of entries: "origins" and "lists".
#pragma once

#include "ctl/cmd/command.h"

// 0 or -errno with err set.
int stats_owners_show(struct context *ctx, struct err *err);
