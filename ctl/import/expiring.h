// SPDX-License-Identifier: GPL-2.0-only
// Comments with the commands that add the elements of a set that expire to a dynamic set.
#pragma once

#include <stdint.h>

#include "ctl/base/json.h"
#include "ctl/base/text.h"

struct expiring_counts {
	size_t noted;
	size_t left;    // beyond the maximum
	size_t skipped; // prefixes and ranges, which a dynamic set does not have
};

// The command counts the seconds from now_s (of CLOCK_REALTIME), whenever it is run.
void expiring_note(const char *set, const char *entry, uint64_t now_s, uint64_t seconds,
		   struct text *ret);
// The elements of a set of nft; `name`: of the dynamic set.
void expiring_notes(const struct json *set, const char *name, uint64_t now_s, size_t max,
		    struct text *ret, struct expiring_counts *counts);
