// SPDX-License-Identifier: GPL-2.0-only
// Applying a policy file for another command than `weir apply`.
#pragma once

#include "ctl/cmd/command.h"

// What `weir apply FILE` does without further options, with its report. Takes --resolver and --resolver-timeout from
// args.
int applying_file(struct context *ctx, const struct args *args, const char *path, struct err *err);
