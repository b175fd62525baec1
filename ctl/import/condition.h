// SPDX-License-Identifier: GPL-2.0-only
// Conditions of nft rules as matches.
#pragma once

#include "ctl/import/import.h"
#include "ctl/import/value.h"

// Alternatives: a packet satisfies the condition if it is in one of them.
struct matches { // as VEC(struct match)
	struct match *at;
	size_t n, cap;
};

struct condition_place {
	struct value_place values;
	const struct import_options *options;
};

// Adds the alternatives of {"op", "left", "right"}. A condition that Weir lacks adds `match_any`,
// loose and omitted.
void condition_read(const struct condition_place *place, const struct json *j, struct matches *ret);
// The same for a key of a verdict map and one of its elements.
void condition_equals(const struct condition_place *place, const struct json *key,
		      const struct json *value, struct matches *ret);
// A limit, a meter, or a set statement with a limit.
void condition_rate(const struct condition_place *place, const char *key, const struct json *j,
		    struct matches *ret);
// Connections that are tracked, and answers that Weir's `established` does not match.
void condition_established(struct arena *arena, bool errors, struct matches *ret);
void condition_omit(struct matches *ret);
// Each alternative with each of the others, where they have common packets.
void matches_meet(struct arena *arena, struct matches *to, const struct matches *with);
