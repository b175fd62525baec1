// SPDX-License-Identifier: GPL-2.0-only
// Combines alternatives, up to a limit.
#include "ctl/import/matches.h"

#include "ctl/base/vec.h"

void condition_omit(struct matches *ret)
{
	struct match *m = vec_add(ret);

	*m = match_any;
	match_omit(m);
}

struct values values_one(struct arena *arena, address_number first, address_number last)
{
	struct interval *at = arena_zalloc(arena, 1, sizeof(*at));

	*at = (struct interval){first, last};
	return (struct values){.at = at, .n = 1};
}

bool is_payload(const struct json *j, const char *protocol, const char *field)
{
	const struct json *p = json_get(j, "payload");

	return text_same(json_get_string(p, "protocol"), protocol) &&
	       text_same(json_get_string(p, "field"), field);
}

#define PAIRS 1024

void matches_meet(struct arena *arena, struct matches *to, const struct matches *with)
{
	struct matches met = {0};

	if (with->n && to->n > PAIRS / with->n) { // too many: without these conditions
		vec_each (to, m)
			match_omit(m);
		return;
	}
	vec_each (to, a) {
		vec_each (with, b) {
			struct match m = match_meet(arena, a, b);

			if (!m.never)
				vec_push(&met, m);
		}
	}
	vec_free(to);
	*to = met;
}
