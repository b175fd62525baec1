// SPDX-License-Identifier: GPL-2.0-only
// Policies from the rules of other firewalls. Pure: a text in, a text out.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/import/options.h"

// The policy for the chains of `nft -j list ruleset`. Weir then drops no packet that the ruleset
// accepts. Adds to *ret and *counts only on success. 0, or -EINVAL with err set: not such a
// document, no chain of the hook, too many rules.
int import_nft(const char *json, size_t len, const struct import_options *options, struct text *ret,
	       struct import_counts *counts, struct err *err);
