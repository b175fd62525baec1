// SPDX-License-Identifier: GPL-2.0-only
// Reads the elements with a timeout.
#include "ctl/import/expiring.h"

#include "ctl/import/value.h"

static void add_word(const char *word, struct text *ret)
{
	for (const char *c = word; *c; c++)
		text_addc(ret, *c <= ' ' || *c > '~' ? '_' : *c);
}

void expiring_note(const char *set, const char *entry, uint64_t seconds, struct text *ret)
{
	text_add(ret, "# weir block --set ");
	add_word(set, ret);
	text_addc(ret, ' ');
	add_word(entry, ret);
	text_addf(ret, " --for %jus\n", (uintmax_t)seconds);
}

static uint64_t seconds_left(const struct json *elem, const struct json *set)
{
	uint64_t expires = json_get_u64(elem, "expires"), timeout = json_get_u64(elem, "timeout");

	timeout = timeout ? timeout : json_get_u64(set, "timeout");
	timeout = expires ? expires : timeout;
	return timeout ? timeout : 1; // it expires now
}

void expiring_notes(const struct json *set, const char *name, size_t max, struct text *ret,
		    struct expiring_counts *counts)
{
	const struct json *list = json_get(set, "elem");

	for (size_t i = 0; i < json_length(list); i++) {
		const struct json *elem = json_get(json_at(list, i), "elem");
		const char *entry = json_get_string(elem, "val");

		if (!value_expires(json_at(list, i)) && !json_get(set, "timeout"))
			continue;
		entry = entry ? entry : json_text(json_at(list, i));
		if (!entry) {
			counts->skipped++;
		} else if (counts->noted == max) {
			counts->left++;
		} else {
			counts->noted++;
			expiring_note(name, entry, seconds_left(elem, set), ret);
		}
	}
}
