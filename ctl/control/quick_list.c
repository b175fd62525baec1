// SPDX-License-Identifier: GPL-2.0-only
// Lists of quick rules in memory, and the words of `rule add`.
#include "ctl/control/quick_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define NAME_BYTES_MAX 255

void quick_free_rule(struct quick_rule *rule)
{
	free(rule->name);
	free(rule->text);
	free(rule->by);
	free(rule->note);
	free(rule->origin);
	free(rule->token);
}

void quick_free(struct quick_rules *q)
{
	vec_each (q, rule)
		quick_free_rule(rule);
	vec_free(q);
}

void quick_set_id(struct quick_rule *rule, uint64_t id)
{
	rule->id = id;
	snprintf(rule->label, sizeof(rule->label), "quick %llu", (unsigned long long)id);
}

// ---- rows ---------------------------------------------------------------------------------------

static char *copy_or_null(const struct json *from, const char *key)
{
	const char *text = json_get_string(from, key);

	return text ? mem_strdup(text) : NULL;
}

void quick_read_rule(const struct json *from, struct quick_rule *ret)
{
	*ret = (struct quick_rule){
		.name = copy_or_null(from, "name"),
		.text = json_get_copy(from, "rule"),
		.by = json_get_copy(from, "by"),
		.note = json_get_copy(from, "note"),
		.origin = copy_or_null(from, "origin"),
		.token = copy_or_null(from, "token"),
		.since_s = json_get_u64(from, "since_s"),
		.until_s = json_get_u64(from, "until_s"),
	};
}

int quick_read_row(const struct json *from, struct quick_rules *ret)
{
	struct quick_rule rule;

	quick_read_rule(from, &rule);
	quick_set_id(&rule, json_get_u64(from, "id"));
	vec_push(ret, rule);
	return rule.id && rule.text[0] && ret->n <= QUICK_MAX ? 0 : -EBADMSG;
}

void quick_write_rule(struct json_writer *file, const struct quick_rule *rule)
{
	if (rule->name)
		json_write_string(file, "name", rule->name);
	json_write_string(file, "rule", rule->text);
	json_write_string(file, "by", rule->by);
	json_write_string(file, "note", rule->note);
	if (rule->origin)
		json_write_string(file, "origin", rule->origin);
	if (rule->token)
		json_write_string(file, "token", rule->token);
	json_write_u64(file, "since_s", rule->since_s);
	json_write_u64(file, "until_s", rule->until_s);
}

// ---- changes ------------------------------------------------------------------------------------

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static size_t find_place(const struct quick_rules *q, const struct quick_place *place)
{
	size_t n = 0;

	if (place->first || !place->before)
		return place->first ? 0 : q->n;
	while (n < q->n && q->at[n].id != place->before)
		n++;
	return n;
}

static int check_room(const struct quick_rules *q, const struct quick_rule *rule, struct err *err)
{
	vec_each (q, other)
		if (rule->name && other->name && !strcmp(rule->name, other->name))
			return err_input(err, "rule %llu has the name \"%s\"",
					 (unsigned long long)other->id, rule->name);
	if (q->n < QUICK_MAX)
		return 0;
	err_refused(err, "there are %d quick rules, which is the maximum", QUICK_MAX);
	return err_hint(err, "write them into the policy, or their addresses into a set");
}

int quick_insert(struct quick_rules *q, struct quick_rule *from, const struct quick_place *place,
		 struct err *err)
{
	struct quick_rule rule = *from;
	size_t at = find_place(q, place);
	int code = check_room(q, from, err);

	if (code)
		return code;
	if (place->before && at == q->n)
		return err_input(err, "no quick rule %llu", (unsigned long long)place->before);
	quick_set_id(&rule, q->next++);
	quick_set_id(from, rule.id);
	rule.name = copy(from->name);
	rule.origin = copy(from->origin);
	rule.token = copy(from->token);
	rule.text = mem_strdup(from->text);
	rule.by = mem_strdup(from->by);
	rule.note = mem_strdup(from->note);
	vec_push(q, rule);
	memmove(&q->at[at + 1], &q->at[at], (q->n - 1 - at) * sizeof(rule));
	q->at[at] = rule;
	quick_change(q);
	return 0;
}

bool quick_is_left_out(const struct quick_rules *q)
{
	return !q->base && q->newest;
}

void quick_keep_active(struct quick_rules *q)
{
	if (!quick_is_left_out(q))
		return;
	vec_each (q, rule)
		quick_free_rule(rule);
	q->n = 0;
	q->version = q->base;
	q->changed = false;
}

void quick_change(struct quick_rules *q)
{
	q->version = (q->base > q->newest ? q->base : q->newest) + 1;
	q->changed = true;
}

size_t quick_end(struct quick_rules *q, uint64_t now_s)
{
	size_t kept = 0, ended;

	for (size_t n = 0; n < q->n; n++)
		if (q->at[n].until_s && q->at[n].until_s <= now_s)
			quick_free_rule(&q->at[n]);
		else
			q->at[kept++] = q->at[n];
	ended = q->n - kept;
	q->n = kept;
	if (ended)
		quick_change(q);
	return ended;
}

void quick_remain(const struct quick_rules *q, uint64_t after_s, struct quick_rules *ret)
{
	vec_each (q, from) {
		struct quick_rule rule = {.until_s = from->until_s, .fresh = from->fresh};

		if (from->until_s && from->until_s <= after_s)
			continue;
		quick_set_id(&rule, from->id);
		rule.name = from->name ? mem_strdup(from->name) : NULL;
		rule.text = mem_strdup(from->text);
		vec_push(ret, rule);
	}
}

uint64_t quick_next_end(const struct quick_rules *q)
{
	uint64_t next = UINT64_MAX;

	vec_each (q, rule)
		if (rule->until_s && rule->until_s < next)
			next = rule->until_s;
	return next;
}

struct policy_quick *quick_texts(const struct quick_rules *q)
{
	struct policy_quick *texts = mem_zalloc(q->n, sizeof(*texts));

	for (size_t n = 0; n < q->n; n++)
		texts[n] = (struct policy_quick){
			.label = q->at[n].label,
			.name = q->at[n].name,
			.text = q->at[n].text,
		};
	return texts;
}

// ---- words --------------------------------------------------------------------------------------

static int check_name(const char *name, struct err *err)
{
	uint64_t number;

	if (!*name)
		return err_input(err, "the name of the rule is empty");
	if (strlen(name) > NAME_BYTES_MAX)
		return err_input(err, "the name of a rule has at most %d bytes", NAME_BYTES_MAX);
	for (const char *at = name; *at; at++)
		if (*at < ' ' || *at > '~' || *at == '"')
			return err_input(err, "the name of a rule has printable ASCII characters, "
					      "without '\"'");
	if (!num_parse_u64(name, strlen(name), 0, UINT64_MAX, &number))
		return err_input(err, "the name of a rule is not a number: that is an ID");
	if (!strncmp(name, "quick ", 6))
		return err_input(err, "'quick N' is the name of a rule without one");
	return 0;
}

// The name is in the text, as in a policy, or given by --name.
static int read_name(char **text, const char *given, struct quick_rule *ret, struct err *err)
{
	char *end = **text == '"' ? strchr(*text + 1, '"') : NULL;

	if (end && given)
		return err_input(err, "the rule has a name, and --name gives another one");
	if (given)
		ret->name = mem_strdup(given);
	if (end) {
		*end = '\0';
		ret->name = mem_strdup(*text + 1);
		*text = end + 1 + strspn(end + 1, " \t");
	}
	if (ret->name && **text == '"')
		return err_input(err, "the rule has two names");
	return ret->name ? check_name(ret->name, err) : 0;
}

int quick_read_words(const char *words, const char *name, struct quick_rule *ret, struct err *err)
{
	CLEANUP_FREE char *copy = NULL;
	char *text;
	int code;

	if (strlen(words) > QUICK_TEXT_MAX)
		return err_input(err, "a quick rule has at most %d bytes", QUICK_TEXT_MAX);
	if (strpbrk(words, "\n\r;#{}\\"))
		return err_input(err,
				 "a quick rule is one line without ';', '#', braces and backslash");
	copy = mem_strdup(words);
	text = copy + strspn(copy, " \t");
	if ((code = read_name(&text, name, ret, err)))
		return code;
	ret->text = mem_strdup(text);
	return *text ? 0 : err_input(err, "missing the words of a rule");
}
