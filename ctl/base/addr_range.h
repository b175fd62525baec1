// SPDX-License-Identifier: GPL-2.0-only
// A range of addresses as prefixes.
#pragma once

#include <stddef.h>

#include "ctl/base/addr.h"

// A range FIRST-LAST of one family, FIRST <= LAST, cut into the fewest prefixes (at most 62 for
// IPv4, 254 for IPv6). ret has room for 254. 0 or -EINVAL; range_parse() also gives the reason.
int range_parse_quiet(const char *text, size_t len, struct prefix ret[254], size_t *ret_n);
