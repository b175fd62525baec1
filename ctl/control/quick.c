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

// A row with a version begins a list; the rows of its rules follow.
static int read_row(void *ctx, const struct json *row)
{
	struct quick_file *f = ctx;

	if (!json_get(row, "version"))
		return f->n ? quick_read_row(row, &f->lists[f->n - 1]) : -EBADMSG;
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
