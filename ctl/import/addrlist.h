// SPDX-License-Identifier: GPL-2.0-only
// List files of weir-policy(5) from other lists of addresses. Pure: a text in, a text out.
#pragma once

#include "ctl/import/addrlist_parts.h"

// Each adds a list to *ret and sets *counts, both only on success. 0, or -EINVAL with err set,
// which names the line.

// Lines with addresses, prefixes or ranges among other columns; '#' begins a comment.
int import_plain(const char *text, size_t len, const struct addrlist_options *options,
		 struct text *ret, struct addrlist_counts *counts, struct err *err);
// The output of ipset save.
int import_ipset(const char *text, size_t len, const struct addrlist_options *options,
		 struct text *ret, struct addrlist_counts *counts, struct err *err);
// A set of `nft -j list ruleset`.
int import_set(const char *json, size_t len, const struct addrlist_options *options,
	       struct text *ret, struct addrlist_counts *counts, struct err *err);
