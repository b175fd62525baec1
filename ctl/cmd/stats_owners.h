// SPDX-License-Identifier: GPL-2.0-only
// `weir stats`: what the entries of each origin and of each list have decided.
#pragma once

#include "ctl/cmd/command.h"

// Prints the tables "origins" and "lists". An entry counts in full for each origin and each list
// that refers to it, so sums of several rows can exceed what the datapath counted.
int stats_owners_show(struct context *ctx, struct err *err);
