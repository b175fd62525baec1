// SPDX-License-Identifier: GPL-2.0-only
// The policy file of commands that run without a person: `weir restore` and `weir run`.
#pragma once

#include "ctl/cmd/command.h"

// The first word, else /etc/weir/INSTANCE.weir, which may not exist. The caller frees it.
char *policy_path(const struct context *ctx, const struct args *args);
// Is the file the text of an accepted revision that is not the current one? It was rolled back, or
// replaced by another policy, and stays so until a person applies it again. A notice then names the
// revisions.
bool policy_was_left(const char *instance, const char *path);
