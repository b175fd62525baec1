// SPDX-License-Identifier: GPL-2.0-only
// Services from the virtual servers of keepalived. Pure.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/import/options.h"

// The policy for the blocks virtual_server; counts has services, those that lack something, and
// virtual servers that a service cannot express, which become comments. Adds to *ret and *counts
// only on success. 0, or -EINVAL with err set and the number of the line.
int import_keepalived(const char *text, size_t len, const char *source, struct text *ret,
		      struct import_counts *counts, struct err *err);
