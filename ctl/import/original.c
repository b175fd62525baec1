// SPDX-License-Identifier: GPL-2.0-only
// A rule of the JSON document in the words of nft, for comments.
#include <string.h>

#include "ctl/import/steps.h"

#define LONGEST 200

static void add_value(struct text *t, const struct json *j);

static void add_list(struct text *t, const struct json *j, const char *between)
{
	for (size_t i = 0; i < json_length(j) && t->len < LONGEST; i++) {
		text_add(t, i ? between : "");
		add_value(t, json_at(j, i));
	}
}

static void add_fields(void *ctx, const char *key, const struct json *value)
{
	struct text *t = ctx;

	if (t->len && t->at[t->len - 1] != ' ' && t->at[t->len - 1] != '"')
		text_addc(t, ' ');
	if (json_kind(value) == JSON_IS_STRING || json_kind(value) == JSON_IS_NUMBER)
		add_value(t, value);
	else
		text_add(t, key);
}

static void add_object(struct text *t, const char *key, const struct json *value)
{
	if (!strcmp(key, "set")) {
		text_add(t, "{ ");
		if (json_kind(value) == JSON_IS_ARRAY)
			add_list(t, value, ", ");
		else
			add_value(t, value);
		text_add(t, " }");
	} else if (!strcmp(key, "concat")) {
		add_list(t, value, " . ");
	} else if (!strcmp(key, "range")) {
		add_list(t, value, "-");
	} else if (!strcmp(key, "&") || !strcmp(key, "|") || !strcmp(key, "^")) {
		add_list(t, value, key[0] == '&' ? " & " : key[0] == '|' ? " | " : " ^ ");
	} else if (!strcmp(key, "elem")) {
		add_value(t, json_get(value, "val"));
	} else if (!strcmp(key, "prefix")) {
		add_value(t, json_get(value, "addr"));
		text_addf(t, "/%ju", (uintmax_t)json_get_u64(value, "len"));
	} else {
		if (strcmp(key, "payload") != 0)
			text_add(t, key);
		if (json_kind(value) == JSON_IS_OBJECT)
			json_each(value, add_fields, t);
	}
}

static void add_value(struct text *t, const struct json *j)
{
	const struct json *value;

	if (t->len > LONGEST)
		return;
	switch (json_kind(j)) {
	case JSON_IS_STRING:
		text_add(t, json_text(j));
		break;
	case JSON_IS_NUMBER:
		text_addf(t, "%ju", (uintmax_t)json_number(j));
		break;
	case JSON_IS_ARRAY:
		add_list(t, j, "|");
		break;
	case JSON_IS_OBJECT: {
		const char *key = ruleset_key(j, &value);

		add_object(t, key, value);
		break;
	}
	default:
		break;
	}
}

static bool add_mark(const struct import_options *options, const struct json *match, struct text *t)
{
	const struct json *meta = json_get(json_get(match, "left"), "meta");
	const struct json *right = json_get(match, "right");
	uint64_t n = json_number(right);

	if (!text_same(json_get_string(meta, "key"), "mark") || n < IMPORT_MARK ||
	    n - IMPORT_MARK >= options->n_marks)
		return false;
	text_free(t);
	text_add(t, options->marks[n - IMPORT_MARK].text);
	return true;
}

static void add_match(struct text *t, const struct json *match)
{
	const char *op = json_get_string(match, "op");

	add_value(t, json_get(match, "left"));
	if (op && strcmp(op, "in") != 0 &&
	    (strcmp(op, "==") != 0 || json_get(json_get(match, "left"), "&")))
		text_addf(t, " %s", op);
	text_addc(t, ' ');
	add_value(t, json_get(match, "right"));
}

static void add_limit(struct text *t, const struct json *limit)
{
	const char *per = json_get_string(limit, "per"),
		   *unit = json_get_string(limit, "rate_unit");

	text_addf(t, "limit rate %s%ju%s%s/%s", json_is_yes(json_get(limit, "inv")) ? "over " : "",
		  (uintmax_t)json_get_u64(limit, "rate"), unit ? " " : "", unit ? unit : "",
		  per ? per : "");
}

// "update @seen { ip saddr limit rate 5/second }", "meter seen { … }".
static void add_filler(struct text *t, const char *key, const struct json *j)
{
	bool meter = !strcmp(key, "meter");
	const char *name = json_get_string(j, meter ? "name" : "set");
	const char *op = json_get_string(j, "op");
	const struct json *stmt = json_get(j, "stmt"), *limit;

	stmt = json_kind(stmt) == JSON_IS_ARRAY ? json_at(stmt, 0) : stmt;
	limit = json_get(stmt, "limit");
	text_addf(t, "%s %s { ", meter ? key : op ? op : "add", name ? name : "");
	add_value(t, json_get(j, meter ? "key" : "elem"));
	if (stmt)
		text_addc(t, ' ');
	if (limit)
		add_limit(t, limit);
	else
		add_value(t, stmt);
	text_add(t, " }");
}

// A named map, or what each key leads to.
static void add_map(struct text *t, const struct json *data)
{
	const struct json *list, *value;

	if (json_kind(data) == JSON_IS_STRING || strcmp(ruleset_key(data, &list), "set") != 0) {
		add_value(t, data);
		return;
	}
	text_add(t, "{ ");
	for (size_t i = 0; i < json_length(list) && t->len < LONGEST; i++) {
		const char *word = ruleset_key(json_at(json_at(list, i), 1), &value);
		const char *target = json_get_string(value, "target");

		text_add(t, i ? ", " : "");
		add_value(t, json_at(json_at(list, i), 0));
		text_addf(t, " : %s%s%s", word, target ? " " : "", target ? target : "");
	}
	text_add(t, " }");
}

static bool add_expression(const struct import_options *options, const struct json *j,
			   struct text *t)
{
	const struct json *value;
	const char *key = ruleset_key(j, &value);

	if (!strcmp(key, "counter") && !json_get(value, "map"))
		return true;
	if (!strcmp(key, "match") && add_mark(options, value, t))
		return false;
	text_add(t, t->len ? " " : "");
	if (!strcmp(key, "match")) {
		add_match(t, value);
	} else if (!strcmp(key, "limit")) {
		add_limit(t, value);
	} else if (!strcmp(key, "mangle")) {
		add_value(t, json_get(value, "key"));
		text_add(t, " set ");
		add_value(t, json_get(value, "value"));
	} else if (!strcmp(key, "set") || !strcmp(key, "meter")) {
		add_filler(t, key, value);
	} else if (!strcmp(key, "vmap")) {
		add_value(t, json_get(value, "key"));
		text_add(t, " vmap ");
		add_map(t, json_get(value, "data"));
	} else if (!strcmp(key, "jump") || !strcmp(key, "goto")) {
		const char *target = json_get_string(value, "target");

		text_addf(t, "%s %s", key, target ? target : "");
	} else {
		text_add(t, key);
		if (json_kind(value) == JSON_IS_OBJECT)
			json_each(value, add_fields, t);
	}
	return t->len < LONGEST;
}

const char *original_text(const struct import_options *options, struct arena *arena,
			  const struct json *rule)
{
	const struct json *expr = json_get(rule, "expr");
	CLEANUP_TEXT struct text t = {0};
	size_t len;

	for (size_t i = 0; i < json_length(expr); i++)
		if (!add_expression(options, json_at(expr, i), &t))
			break;
	len = t.len > LONGEST ? LONGEST : t.len;
	for (size_t i = 0; i < len; i++)
		if (t.at[i] < ' ' || t.at[i] > '~')
			t.at[i] = '?';
	return arena_printf(arena, "%.*s%s", (int)len, text_get(&t), t.len > len ? "..." : "");
}
