// SPDX-License-Identifier: GPL-2.0-only
// Alternatives of a condition, and the place where conditions are read.
#pragma once

#include "ctl/import/value.h"

// A packet satisfies the condition if one matches.
struct matches { // as VEC(struct match)
	struct match *at;
	size_t n, cap;
};

struct condition_place {
	struct value_place values;
	const struct import_options *options;
};

// Adds `match_any`, loose and omitted: a condition that Weir lacks.
void condition_omit(struct matches *ret);
// Each alternative with each of the others, where they have common packets.
void matches_meet(struct arena *arena, struct matches *to, const struct matches *with);

struct values values_one(struct arena *arena, address_number first, address_number last);
// Is it {"payload": {"protocol": …, "field": …}}?
bool is_payload(const struct json *j, const char *protocol, const char *field);
