// SPDX-License-Identifier: GPL-2.0-only
// The paths of the API, and their requests as words of commands.
#include "ctl/agent/api_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE      ((const char *const[]){NULL})

// clang-format off
const struct api_route api_routes[] = {
	{"/v1/status",      API_GET,    false, {"status"},  KEYS("limits"), NONE},
	{"/v1/rules",       API_GET,    false, {"stats"},   KEYS("interfaces", "all"), NONE},
	{"/v1/rules",       API_POST,   false, {"rule", "add"},
	 KEYS("name=", "for=", "note=", "origin=", "first", "before=", "force", "dry-run"), KEYS("rule")},
	{"/v1/rules",       API_DELETE, false, {"rule", "delete"},
	 KEYS("origin=", "all", "force", "dry-run"), KEYS("id")},
	{"/v1/rules/quick", API_GET,    false, {"rule", "list"}, KEYS("origin="), NONE},
	{"/v1/services",    API_GET,    false, {"service"}, NONE, KEYS("service")},
	{"/v1/overlay",     API_GET,    false, {"list"},    KEYS("origin=", "list=", "sort=", "top=", "set="), KEYS("what")},
	{"/v1/changes",     API_GET,    false, {"changes", "--last=1000"}, KEYS("since=", "by="), NONE},
	{"/v1/block",       API_POST,   false, {"block"},
	 KEYS("for=", "note=", "origin=", "group=", "mask", "to", "both", "volatile", "force", "dry-run"), KEYS("what")},
	{"/v1/unblock",     API_POST,   false, {"unblock"},
	 KEYS("origin=", "mask", "to", "both", "force", "dry-run"), KEYS("what")},
	{"/v1/batch",       API_POST,   true,  {"batch"}, NONE, NONE},
	{"/v1/apply",       API_POST,   false, {"apply"},
	 KEYS("confirm", "note=", "if-revision=", "force", "dry-run", "volatile"), KEYS("file")},
	{"/v1/drain",       API_POST,   false, {"drain"}, KEYS("for=", "all", "volatile", "force"), KEYS("service", "backend")},
	{0},
};
// clang-format on

void api_words_free(struct api_words *w)
{
	vec_each (&w->list, word)
		free(*word);
	vec_free(&w->list);
}

// NULL: none of them.
static const char *find_key(const char *const *keys, const char *key)
{
	size_t len = strlen(key);

	for (; *keys && !strchr(key, '='); keys++) // a key of the table with '=' has a value
		if (!strncmp(*keys, key, len) && (!(*keys)[len] || !strcmp(*keys + len, "=")))
			return *keys;
	return NULL;
}

struct making {
	const struct api_route *route;
	struct api_words *words;
	struct err *err;
	int code;
};

static void refuse(struct making *m, const char *key, const char *wants)
{
	if (!m->code)
		m->code = err_input(m->err, "'%s' of %s must be %s", key, m->route->path, wants);
}

// "--key=value": a value that begins with a dash is no option.
static void add_option(void *making, const char *key, const struct json *value)
{
	struct making *m = making;
	const char *option = find_key(m->route->options, key);

	if (!option) {
		if (!find_key(m->route->words, key) && !m->code)
			m->code = err_input(m->err, "%s has no '%s'", m->route->path, key);
		return;
	}
	switch (json_kind(value)) {
	case JSON_IS_STRING:
		vec_push(&m->words->list, mem_printf("--%s=%s", key, json_text(value)));
		return;
	case JSON_IS_NUMBER:
		vec_push(&m->words->list, mem_printf("--%s=%" PRIu64, key, json_number(value)));
		return;
	case JSON_IS_BOOL:
		if (strchr(option, '='))
			refuse(m, key, "a string or a number");
		else if (json_is_yes(value))
			vec_push(&m->words->list, mem_printf("--%s", key));
		return;
	default:
		refuse(m, key, "a string, a number, true or false");
	}
}

static void add_word(struct making *m, const char *key, const struct json *value)
{
	const char *text = json_text(value);

	if (text && !strcmp(key, "file") && !strcmp(text, "-"))
		refuse(m, key, "a path: a request has no standard input");
	else if (text)
		vec_push(&m->words->list, mem_strdup(text));
	else
		refuse(m, key, "a string, or an array of strings");
}

static void add_words(struct making *m, const char *key, const struct json *value)
{
	if (json_kind(value) != JSON_IS_ARRAY) {
		add_word(m, key, value);
		return;
	}
	for (size_t n = 0; n < json_length(value); n++)
		add_word(m, key, json_at(value, n));
}

int api_words_make(const struct api_route *r, const struct json *body, struct api_words *ret,
		   struct err *err)
{
	struct making m = {.route = r, .words = ret, .err = err};

	*ret = (struct api_words){0};
	vec_push(&ret->list, mem_strdup("-j"));
	for (size_t n = 0; n < ARRAY_SIZE(r->command) && r->command[n]; n++)
		vec_push(&ret->list, mem_strdup(r->command[n]));
	if (r->text)
		vec_push(&ret->list, mem_strdup("--file=-"));
	if (body && json_kind(body) != JSON_IS_OBJECT)
		m.code = err_input(err, "the body of %s must be an object", r->path);
	else if (body)
		json_each(body, add_option, &m);
	vec_push(&ret->list, mem_strdup("--")); // words that begin with a dash are no options
	for (const char *const *key = r->words; *key && body && !m.code; key++)
		if (json_get(body, *key))
			add_words(&m, *key, json_get(body, *key));
	vec_push(&ret->list, NULL);
	return m.code;
}
