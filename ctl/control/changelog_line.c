// SPDX-License-Identifier: GPL-2.0-only
// A line of the record of changes: printed, and parsed again.
#include "ctl/control/changelog_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

void changelog_free_change(struct changelog_change *c)
{
	free(c->verb);
	free(c->command);
	free(c->by);
	free(c->origin);
	free(c->list);
	free(c->result);
	free(c->text);
	free(c->about);
	*c = (struct changelog_change){0};
}

// Adds a URL from its host on, without its user, password and query. Returns how much is read.
static size_t add_public(struct text *t, const char *host)
{
	size_t authority = strcspn(host, "/?# \t\n'\"");
	const char *user = memrchr(host, '@', authority);
	const char *from = user ? user + 1 : host;
	const char *query = from + strcspn(from, "?# \t\n'\"");
	const char *end = query + strcspn(query, " \t\n'\"");

	text_add(t, user ? "...@" : "");
	text_addn(t, from, (size_t)(query - from));
	text_add(t, end > query ? "?..." : "");
	return (size_t)(end - host);
}

// Copies a text without what its URLs may keep secret.
static char *without_secrets(const char *text)
{
	struct text out = {0};

	for (const char *host; (host = strstr(text, "://"));) {
		host += strlen("://");
		text_addn(&out, text, (size_t)(host - text));
		text = host + add_public(&out, host);
	}
	text_add(&out, text);
	return text_take(&out);
}

static void write_shown(struct json_writer *w, const char *key, const char *text, size_t size)
{
	CLEANUP_FREE char *public = text ? without_secrets(text) : NULL;
	char shown[CHANGELOG_TEXT];

	if (!text || !*text)
		return;
	text_put_shown(shown, size, public);
	json_write_string(w, key, shown);
}

char *changelog_print(const struct changelog_change *c, uint64_t number)
{
	CLEANUP(json_writer_free) struct json_writer w = {0};

	json_write_object(&w, NULL);
	json_write_u64(&w, "n", number);
	json_write_u64(&w, "at_ms", c->at_ms);
	json_write_u64(&w, "uid", c->uid);
	write_shown(&w, "verb", c->verb, CHANGELOG_WORD);
	write_shown(&w, "command", c->command, CHANGELOG_TEXT);
	write_shown(&w, "by", c->by, CHANGELOG_WORD);
	write_shown(&w, "origin", c->origin, CHANGELOG_WORD);
	write_shown(&w, "list", c->list, CHANGELOG_WORD);
	write_shown(&w, "result", c->result, CHANGELOG_WORD);
	write_shown(&w, "text", c->text, CHANGELOG_TEXT);
	write_shown(&w, "about", c->about, CHANGELOG_TEXT);
	json_write_u64(&w, "added", c->added);
	json_write_u64(&w, "removed", c->removed);
	if (c->changes > 1)
		json_write_u64(&w, "changes", c->changes);
	json_write_end(&w);
	return text_take(&w.text);
}

static char *get_shown(const struct json *j, const char *key)
{
	const char *text = json_get_string(j, key);
	struct text shown = {0};

	text_add_shown(&shown, text ? text : "", text ? strlen(text) : 0);
	return text_take(&shown);
}

int changelog_parse(const char *line, size_t len, struct changelog_change *ret)
{
	CLEANUP_JSON struct json *j = json_parse(line, len, NULL, 0);
	const char *verb = json_get_string(j, "verb");

	if (json_kind(j) != JSON_IS_OBJECT || !verb || !*verb ||
	    json_kind(json_get(j, "at_ms")) != JSON_IS_NUMBER)
		return -EBADMSG;
	*ret = (struct changelog_change){
		.at_ms = json_get_u64(j, "at_ms"),
		.uid = json_get_u64(j, "uid"),
		.verb = get_shown(j, "verb"),
		.command = get_shown(j, "command"),
		.by = get_shown(j, "by"),
		.origin = get_shown(j, "origin"),
		.list = get_shown(j, "list"),
		.result = get_shown(j, "result"),
		.text = get_shown(j, "text"),
		.about = get_shown(j, "about"),
		.added = json_get_u64(j, "added"),
		.removed = json_get_u64(j, "removed"),
		.changes = json_get(j, "changes") ? json_get_u64(j, "changes") : 1,
	};
	return 0;
}
