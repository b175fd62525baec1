// SPDX-License-Identifier: GPL-2.0-only
// The last packets that rules log, for the page.
#pragma once

#include "ctl/base/err.h"
#include "ctl/cmd/command.h"

// Sets an array of so many events at most under `key`, the oldest first, each as in a document of
// `weir watch` with its time (at). Nothing counts as read. 0 or -errno with err set.
int watch_last(struct context *ctx, const char *key, size_t most, struct err *err);
