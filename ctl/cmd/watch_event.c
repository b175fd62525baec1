// SPDX-License-Identifier: GPL-2.0-only
// Describes an event in words, also one that was read from a document.
#include "ctl/cmd/watch_event.h"

#include <inttypes.h>
#include <string.h>

static bool read_address(const struct json *document, const char *key, struct addr *ret)
{
	const char *text = json_get_string(document, key);

	return text && !addr_parse(text, strlen(text), ret, NULL);
}

bool watch_event_read(const struct json *document, struct watch_event *ret)
{
	struct watch_event e = {
		.monotonic_us = json_get_u64(document, "monotonic_us"),
		.interface = json_get_string(document, "interface"),
		.verdict = json_get_string(document, "verdict"),
		.reason = json_get_string(document, "reason"),
		.rule = json_get_string(document, "rule"),
		.entry = json_get_string(document, "entry"),
		.packet = json_get_string(document, "packet"),
		.length = json_get_u64(document, "length"),
		.missed = json_get_u64(document, "missed"),
		.logged = json_is_yes(json_get(document, "logged")),
	};

	if (!e.monotonic_us || !e.interface || !e.verdict || !e.reason || !e.packet)
		return false;
	e.ip = read_address(document, "from", &e.from) && read_address(document, "to", &e.to);
	*ret = e;
	return true;
}

void watch_event_text(const struct watch_event *e, const char *color, const char *plain,
		      struct text *head, struct text *tail)
{
	text_addf(head, "%s %s%s%s %s", e->interface, color, e->verdict, plain, e->reason);
	if (e->rule)
		text_addf(head, " \"%s\"", e->rule);
	if (e->entry && strchr(e->entry, '/')) // else it is just the address
		text_addf(head, " %s", e->entry);
	text_addc(head, ':');
	text_addf(tail, "%s, %" PRIu64 " bytes", e->packet, e->length);
}
