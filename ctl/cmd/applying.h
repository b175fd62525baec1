// SPDX-License-Identifier: GPL-2.0-only
// Applying a policy for another command than `weir apply`.
#pragma once

#include "ctl/cmd/command.h"

// Does the work of `weir apply FILE` without further options, or with --unattended, with its
// report. Takes --resolver and --resolver-timeout from args.
int applying_file(struct context *ctx, const struct args *args, const char *path, bool unattended,
		  struct err *err);
// The same with an accepted revision, as `weir rollback REVISION`.
int applying_revision(struct context *ctx, const struct args *args, const char *revision,
		      struct err *err);
