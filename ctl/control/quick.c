// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the file of quick rules.
#include "ctl/control/quick.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/generation.h"

enum { NEWEST, BEFORE, LISTS };

// Both lists; a missing one is empty, with version 0.
struct quick_file {
	struct quick_rules lists[LISTS];
	size_t n;
};

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

static void free_file(struct quick_file *f)
{
	for (size_t l = 0; l < LISTS; l++)
		quick_free(&f->lists[l]);
}

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/rules", WEIR_STATE_FOLDER, instance);
}

// ---- the file -----------------------------------------------------------------------------------

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

static int read_rule(const struct json *from, struct quick_rules *ret)
{
	struct quick_rule rule;

	quick_read_rule(from, &rule);
	quick_set_id(&rule, json_get_u64(from, "id"));
	vec_push(ret, rule);
	return rule.id && rule.text[0] && ret->n <= QUICK_MAX ? 0 : -EBADMSG;
}

// A row with a version begins a list; the rows of its rules follow.
static int read_row(void *ctx, const struct json *row)
{
	struct quick_file *f = ctx;

	if (!json_get(row, "version"))
		return f->n ? read_rule(row, &f->lists[f->n - 1]) : -EBADMSG;
	if (f->n == LISTS)
		return -EBADMSG;
	f->lists[f->n].version = json_get_u64(row, "version");
	f->lists[f->n++].next = json_get_u64(row, "next");
	return 0;
}

static const struct state_kind rule_kind = {.name = "rule", .row = read_row};

static int read_file(const char *instance, struct quick_file *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	int code;

	*ret = (struct quick_file){.lists = {{.next = 1}, {.next = 1}}};
	code = state_read(path, &rule_kind, ret, err);
	if (code)
		free_file(ret);
	if (code == -EBADMSG)
		err_hint(err, "move it away to continue without quick rules");
	return code;
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

static void add_rule(struct json_writer *file, const struct quick_rule *rule)
{
	state_add(file, &rule_kind);
	json_write_u64(file, "id", rule->id);
	quick_write_rule(file, rule);
	json_write_end(file);
}

static void add_list(struct json_writer *file, const struct quick_rules *q, uint64_t version)
{
	state_add(file, &rule_kind);
	json_write_u64(file, "version", version);
	json_write_u64(file, "next", q->next);
	json_write_end(file);
	vec_each (q, rule)
		add_rule(file, rule);
}

// before NULL: only one list.
static int write_file(const char *instance, const struct quick_rules *q,
		      const struct quick_rules *before, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP(json_writer_free) struct json_writer file = {0};

	add_list(&file, q, q->version);
	if (before) // no rules that were active have the version 0
		add_list(&file, before, before->base ? before->base : before->version);
	return state_write(path, &file, err);
}

int quick_save(const char *instance, const struct quick_rules *q, struct err *err)
{
	return write_file(instance, q, NULL, err);
}

// ---- which list counts --------------------------------------------------------------------------

// The list of this version; NULL: the file does not have it.
static struct quick_rules *find(struct quick_file *f, uint64_t version)
{
	for (size_t l = 0; l < f->n; l++)
		if (f->lists[l].version == version)
			return &f->lists[l];
	return NULL;
}

static void take(struct quick_rules *from, struct quick_rules *ret)
{
	*ret = *from;
	*from = (struct quick_rules){0};
}

int quick_read_version(const char *instance, uint64_t version, struct quick_rules *ret,
		       struct err *err)
{
	CLEANUP(free_file) struct quick_file f = {0};
	struct quick_rules *list;
	int code;

	*ret = (struct quick_rules){.next = 1};
	if (!version)
		return 0;
	if ((code = read_file(instance, &f, err)))
		return code;
	if (!(list = find(&f, version))) {
		err_stated(err, ENODATA, "'%s/%s/rules' does not have the active quick rules",
			   WEIR_STATE_FOLDER, instance);
		err_hint(err, "weir apply --again --force continues with the rules that it has");
		return -ENODATA;
	}
	take(list, ret);
	return 0;
}

// i NULL: no instance.
static int read_for(const char *instance, const struct instance *i, struct quick_rules *ret,
		    struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP(free_file) struct quick_file f = {0};
	struct commit_state state = {0};
	struct quick_rules *list;
	uint64_t newest, next;
	int code = i ? commit_read(i, &state, err) : 0;

	*ret = (struct quick_rules){.next = 1};
	if (code)
		return code;
	if (state.in_force && (code = generation_read_about(i, state.in_force, about, err)))
		return code;
	if ((code = read_file(instance, &f, err)))
		return code;
	newest = f.lists[NEWEST].version;
	next = f.lists[NEWEST].next;
	list = i ? find(&f, about->quick) : NULL;
	take(list ? list : &f.lists[NEWEST], ret);
	ret->next = next;
	ret->newest = newest;
	ret->base = i ? about->quick : newest;
	return 0;
}

int quick_read(const char *instance, struct quick_rules *ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	int code = bpffs_exist(instance) ? instance_open(instance, &i, err) : 0;

	return code ? code : read_for(instance, i, ret, err);
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

int quick_check(const struct instance *i, const struct quick_rules *q, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if (state.in_force && (code = generation_read_about(i, state.in_force, about, err)))
		return code;
	if (about->quick == q->base)
		return 0;
	err_refused(err, "another command has changed the quick rules meanwhile");
	return -ESTALE;
}

int quick_stage(const struct instance *i, const struct quick_rules *q, struct err *err)
{
	CLEANUP_QUICK struct quick_rules before = {0};
	int code;

	if (!q->changed)
		return 0;
	if ((code = read_for(i->name, i, &before, err)))
		return code;
	return write_file(i->name, q, &before, err);
}

int quick_settle(const struct instance *i, struct err *err)
{
	CLEANUP_QUICK struct quick_rules now = {0};
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code || !state.in_force) // unknown which list is active
		return code;
	code = read_for(i->name, i, &now, err);
	if (code || now.version != now.base || now.version == now.newest)
		return code;
	return quick_save(i->name, &now, err);
}
