// SPDX-License-Identifier: GPL-2.0-only
// weir batch --each: lines are answered as they come, and those that wait together share a commit.
#pragma once

#include "ctl/cmd/line.h"

// file: NULL and "-" are standard input. Names and lists hold up the lines after them. 0, or -errno
// with err set.
int batch_each(struct context *ctx, const char *file, struct err *err);
