// SPDX-License-Identifier: GPL-2.0-only
// weir batch --each: for programs that keep a pipe open and send commands as they come.
#pragma once

#include "ctl/cmd/batch_lines.h"

// Reads lines to the end of the file (NULL: standard input). Each is committed before the next one is read, and
// answered with a line "ok RESULT" or "error REASON", or with -j with a document. No lock is held between lines.
int batch_each(struct context *ctx, const char *file, struct err *err);
