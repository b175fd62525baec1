// SPDX-License-Identifier: GPL-2.0-only
// weir top -r: who sends, and what, of the packets in a capture file.
#pragma once

#include "ctl/cmd/command.h"

int top_file_run(struct context *ctx, const struct args *args, struct err *err);
