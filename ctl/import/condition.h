// SPDX-License-Identifier: GPL-2.0-only
// Conditions of nft rules as matches.
#pragma once

#include "ctl/import/matches.h"

// Adds the alternatives of {"op", "left", "right"}. A condition that Weir lacks adds `match_any`,
// loose and omitted.
void condition_read(const struct condition_place *place, const struct json *j, struct matches *ret);
// The same for a key of a verdict map and one of its elements.
void condition_equals(const struct condition_place *place, const struct json *key,
		      const struct json *value, struct matches *ret);
// The family and protocol that a key implies. Loose where reading it may fail for other reasons.
void condition_key(const struct condition_place *place, const struct json *key,
		   struct matches *ret);
