// SPDX-License-Identifier: GPL-2.0-only
// Reads the elements with a timeout.
#include "ctl/import/expiring.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "common/limits-policy.h"
#include "ctl/import/value.h"

// The operator gives the line to a shell.
static void add_word(const char *word, struct text *ret)
{
	for (const char *c = word; *c; c++)
		text_addc(ret, isalnum((unsigned char)*c) || strchr("-.:/", *c) ? *c : '_');
}

static void add_time(uint64_t time_s, struct text *ret)
{
	time_t seconds = (time_t)time_s;
	struct tm utc = {0};

	gmtime_r(&seconds, &utc);
	text_addf(ret, "%04d-%02d-%02d %02d:%02d:%02d UTC", utc.tm_year + 1900, utc.tm_mon + 1,
		  utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

void expiring_note(const char *set, const char *entry, uint64_t now_s, uint64_t seconds,
		   struct text *ret)
{
	uint64_t end_s =
		now_s + (seconds < POLICY_TIME_MS / 1000 ? seconds : POLICY_TIME_MS / 1000);

	text_add(ret, "# weir block --set ");
	add_word(set, ret);
	text_addc(ret, ' ');
	add_word(entry, ret);
	text_addf(ret, " --for $((%ju-$(date +%%s)))s # until ", (uintmax_t)end_s);
	add_time(end_s, ret);
	text_addc(ret, '\n');
}

static uint64_t seconds_left(const struct json *elem, const struct json *set)
{
	uint64_t expires = json_get_u64(elem, "expires"), timeout = json_get_u64(elem, "timeout");

	timeout = timeout ? timeout : json_get_u64(set, "timeout");
	timeout = json_get(elem, "expires") ? expires : timeout;
	return timeout ? timeout : 1; // it expires now
}

void expiring_notes(const struct json *set, const char *name, uint64_t now_s, size_t max,
		    struct text *ret, struct expiring_counts *counts)
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
			expiring_note(name, entry, now_s, seconds_left(elem, set), ret);
		}
	}
}
