// SPDX-License-Identifier: GPL-2.0-only
// Addresses, prefixes and ranges as people write them: parsed, or the reason and the probable
// meaning.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

// As prefix_parse_quiet(). 0, or -EINVAL with a sentence and a hint in err that suggests what was
// probably meant: "10/8", "10.0.0.0/255.0.0.0", host bits set, leading zeros, "0x7f.1", "0/0",
// "fe80::1%eth0", "1.2.3.4/33", "name/24". err NULL: no sentence is made.
int prefix_parse(const char *text, size_t len, struct prefix *ret, bool *ret_mapped,
		 struct err *err);
// As range_parse_quiet(), with sentence and hint.
int range_parse(const char *text, size_t len, struct prefix ret[254], size_t *ret_n,
		struct err *err);
