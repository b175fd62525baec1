// SPDX-License-Identifier: GPL-2.0-only
// The prefixes of a country or autonomous system.
#pragma once

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"

struct geo_ranges {
	VEC(struct prefix)
	prefixes;     // sorted by prefix_compare, neighbours joined; none: not in the database
	char *source; // the file
};
