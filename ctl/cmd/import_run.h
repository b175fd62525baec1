// SPDX-License-Identifier: GPL-2.0-only
// Programs that read the rules of other firewalls, in a network namespace without a name.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/text.h"

// Leaves the network namespace for a new one, which ends with this process. 0 or -errno with err
// set.
int import_leave(struct err *err);
// Runs the program with `input` on its standard input, and adds what it prints. 0, or -errno with
// err set: not installed (the package is named), not ended after so many seconds, or failed, with
// the first line that it has reported.
int import_run(const char *const *words, const char *package, const char *input, size_t len,
	       unsigned seconds, struct text *ret, struct err *err);
