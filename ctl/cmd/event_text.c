// SPDX-License-Identifier: GPL-2.0-only
// Makes fields of the values of a document, whatever they are called.
#include "ctl/cmd/event_text.h"

#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/cmd/change_text.h"
#include "ctl/cmd/watch_event.h"

#define NAME_MAX_LEN 64 // the journal drops entries with longer names of fields

// Priorities of syslog(3).
#define PRIORITY_WARNING 4
#define PRIORITY_NOTICE  5
#define PRIORITY_INFO    6

// ---- fields -------------------------------------------------------------------------------------

static void add_field(struct text *to, const char *name, const char *value)
{
	size_t len = strlen(value);
	uint64_t len_le = htole64(len);

	text_add(to, name);
	if (strchr(value, '\n')) {
		text_addc(to, '\n');
		text_addn(to, (const char *)&len_le, sizeof(len_le));
	} else {
		text_addc(to, '=');
	}
	text_addn(to, value, len);
	text_addc(to, '\n');
}

static void add_value(struct text *to, const char *name, const struct json *value)
{
	num_text number;

	switch (json_kind(value)) {
	case JSON_IS_STRING:
		add_field(to, name, json_text(value));
		break;
	case JSON_IS_NUMBER:
		add_field(to, name, num_format(json_number(value), number));
		break;
	case JSON_IS_BOOL:
		add_field(to, name, json_is_yes(value) ? "true" : "false");
		break;
	default:
		break;
	}
}

// An array is one field several times.
static void add_values(void *text, const char *key, const struct json *value)
{
	char name[NAME_MAX_LEN + 1];

	if (!strcmp(key, "schema"))
		return;
	snprintf(name, sizeof(name), "WEIR_%s", key);
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
	if (json_kind(value) != JSON_IS_ARRAY)
		add_value(text, name, value);
	for (size_t n = 0; json_kind(value) == JSON_IS_ARRAY && n < json_length(value); n++)
		add_value(text, name, json_at(value, n));
}

// ---- the message --------------------------------------------------------------------------------

static unsigned say_packet(const struct watch_event *e, struct text *ret)
{
	CLEANUP_TEXT struct text tail = {0};

	watch_event_text(e, "", "", ret, &tail);
	text_addf(ret, " %s", text_get(&tail));
	return PRIORITY_INFO;
}

static unsigned say_change(struct changelog_change *c, struct text *ret)
{
	bool done = text_same(c->result, CHANGELOG_DONE);

	c->entries = true; // counts of other changes are 0
	text_addf(ret, "%s: %s: ", c->by, c->command);
	change_result(ret, c);
	changelog_free_change(c);
	return done ? PRIORITY_NOTICE : PRIORITY_WARNING;
}

static unsigned say_missed(const struct json *document, struct text *ret)
{
	const char *why = json_get_string(document, "why");
	const char *error = json_get_string(json_get(document, "error"), "text");
	uint64_t missed = json_get_u64(document, "missed");

	if (error)
		text_add(ret, error);
	else
		text_addf(ret, "%" PRIu64 " %s left out: %s", missed,
			  num_plural(missed, "event was", "events were"),
			  why ? why : "they arrived faster than they were recorded");
	return PRIORITY_WARNING;
}

// Returns its priority.
static unsigned say(const char *line, size_t len, const struct json *document, struct text *ret)
{
	struct changelog_change change;
	struct watch_event event;

	if (watch_event_read(document, &event))
		return say_packet(&event, ret);
	if (!changelog_parse(line, len, &change))
		return say_change(&change, ret);
	return say_missed(document, ret);
}

void event_fields(const char *line, size_t len, struct text *ret)
{
	CLEANUP_JSON struct json *document = json_parse(line, len, NULL, 0);
	CLEANUP_TEXT struct text message = {0}, shown = {0};
	unsigned priority = say(line, len, document, &message);
	num_text number;

	text_add_shown(&shown, text_get(&message), message.len);
	add_field(ret, "MESSAGE", text_get(&shown));
	add_field(ret, "PRIORITY", num_format(priority, number));
	add_field(ret, "SYSLOG_IDENTIFIER", "weir");
	json_each(document, add_values, ret);
}

void event_missed_line(uint64_t missed, const char *why, struct text *ret)
{
	CLEANUP(json_writer_free) struct json_writer w = {0};
	num_time_text now;

	json_write_object(&w, NULL);
	json_write_u64(&w, "schema", 1);
	if (num_format_time_ms(time_ms(CLOCK_REALTIME), now))
		json_write_string(&w, "time", now);
	json_write_u64(&w, "missed", missed);
	json_write_string(&w, "why", why);
	json_write_end(&w);
	text_addn(ret, w.text.at, w.text.len);
}
