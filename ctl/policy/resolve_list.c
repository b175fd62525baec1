// SPDX-License-Identifier: GPL-2.0-only
// List files and feeds, with errors at the place of the set that names them.

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/resolver.h"
#include "ctl/policy/urls.h"

struct loading {
	struct resolver *r;
	const struct ast_item *item;
	const char *path;
	struct list list;
	enum diag_level level; // of its problems
};

// Has the problem the path already, as "cannot open 'FOLDER/FILE'" has?
static bool names_file(const char *what, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = what; (at = strstr(at, word)); at++)
		if (at[len] == '\'')
			return true;
	return false;
}

static void report(struct loading *l)
{
	uint64_t more = l->list.bad - l->list.problems.n;

	vec_each (&l->list.problems, p) {
		if (p->line)
			diag_add(l->r->diag, l->level, l->item->at, p->hint, "'%s' line %u: %s",
				 l->item->word, p->line, p->what);
		else if (names_file(p->what, l->item->word))
			diag_add(l->r->diag, l->level, l->item->at, p->hint, "%s", p->what);
		else
			diag_add(l->r->diag, l->level, l->item->at, p->hint, "'%s': %s",
				 l->item->word, p->what);
	}
	if (more && !l->list.refused)
		diag_add(l->r->diag, l->level, l->item->at, NULL, "'%s': %" PRIu64 " more bad %s",
			 l->item->word, more, num_plural(more, "line", "lines"));
}

static void complain(struct loading *l, const char *hint, const char *what)
{
	vec_push(&l->list.problems, ((struct list_problem){
					    .what = arena_strdup(&l->list.arena, what),
					    .hint = arena_strdup(&l->list.arena, hint),
				    }));
	l->list.bad++;
	l->list.refused = true;
}

static void read_text(struct loading *l, const char *text, size_t len, bool lax)
{
	struct list_options options = {
		.lax = lax, .wide = l->item->wide, .file = (uint16_t)l->r->files.n};

	list_read(&l->list, text, len, &options);
}

// Fills l->list; false: the file is refused, and the list's problems have the reason.
static bool read_file(struct loading *l)
{
	const struct source_reader *files = l->r->env->files ? l->r->env->files : &source_system;
	CLEANUP_FREE char *text = NULL;
	struct err err = {0};
	size_t len = 0;

	if (files->read(files->ctx, l->path, POLICY_FILE_BYTES, &text, &len, &err) < 0) {
		complain(l, err.hint[0] ? err.hint : NULL, err.text);
		return false;
	}
	read_text(l, text, len, l->item->lax);
	if (l->list.refused || (l->list.bad && !l->item->lax))
		return false;
	if (l->list.good >= l->item->min)
		return true;
	complain(l, NULL,
		 arena_printf(&l->list.arena, "%" PRIu64 " good %s, fewer than its min %u",
			      l->list.good, num_plural(l->list.good, "line", "lines"),
			      l->item->min));
	return false;
}

static bool read_last(struct loading *l)
{
	CLEANUP_FREE char *text = NULL;
	size_t len = 0;

	if (!l->r->env->last_list || l->r->env->last_list(l->r->env->ctx, l->path, &text, &len) < 0)
		return false;
	l->level = DIAG_WARNING;
	report(l);
	diag_warning(l->r->diag, l->item->at, NULL, "'%s': its last good content is used",
		     l->item->word);
	list_free(&l->list);
	l->list = (struct list){0};
	read_text(l, text, len, true);
	return true;
}

static void warn(struct loading *l)
{
	if (l->list.bad && l->item->lax)
		diag_warning(l->r->diag, l->item->at, NULL,
			     "'%s': %" PRIu64 " bad %s ignored, the first is line %u: %s",
			     l->item->word, l->list.bad, num_plural(l->list.bad, "line", "lines"),
			     l->list.problems.at[0].line, l->list.problems.at[0].what);
	if (l->list.mapped)
		diag_warning(l->r->diag, l->item->at, NULL,
			     "'%s' line %u: a mapped address is read as its IPv4 address",
			     l->item->word, l->list.mapped);
}

static void load(struct loading *l, struct list_file *ret)
{
	struct resolved_file file = {.name = arena_strdup(&l->r->r->memory, l->path), .list = true};
	bool good = read_file(l), refused = false;

	if (good) {
		warn(l);
	} else if (read_last(l)) {
		file.stale = true;
	} else {
		report(l);
		list_free(&l->list);
		l->list = (struct list){0};
		refused = true;
	}
	cidr_sort(&l->list.set);
	file.entries = l->list.good;
	file.skipped = l->list.bad;
	*ret = (struct list_file){.item = l->item,
				  .list = l->list,
				  .refused = refused,
				  .file = (uint16_t)l->r->files.n};
	vec_push(&l->r->files, file);
}

// Its entries are where the lists are that have them (take_known).
static void leave_unread(struct resolver *r, const struct ast_item *item, const char *path)
{
	vec_push(&r->lists, ((struct list_file){.item = item, .file = (uint16_t)r->files.n}));
	vec_push(&r->files,
		 ((struct resolved_file){.name = arena_strdup(&r->r->memory, path), .list = true}));
}

struct list_file *resolve_list(struct resolver *r, const struct ast_item *item)
{
	const char *path = item->kind == AST_URL
				   ? item->word
				   : source_path(&r->scratch, item->at.file->name, item->word);
	const char *key =
		arena_printf(&r->scratch, "%s %u %d %d", path, item->min, item->lax, item->wide);
	struct loading l = {.r = r, .item = item, .path = path, .level = DIAG_ERROR};
	uint32_t number = index_add(&r->list_index, key, (uint32_t)r->lists.n);

	if (number < r->lists.n)
		return &r->lists.at[number];
	if (r->files.n >= POLICY_FILES) {
		diag_error(r->diag, item->at, NULL, "more than %d files in one policy",
			   POLICY_FILES);
		vec_push(&r->lists,
			 ((struct list_file){.key = key, .item = item, .refused = true}));
		return vec_last(&r->lists);
	}
	if (item->kind == AST_URL && r->feeds_left_out) {
		vec_push(&r->lists,
			 ((struct list_file){.key = key, .item = item, .refused = true}));
		return vec_last(&r->lists);
	}
	if (r->env->known)
		leave_unread(r, item, path);
	else
		load(&l, vec_add(&r->lists));
	vec_last(&r->lists)->key = key;
	return vec_last(&r->lists);
}

void resolve_urls(struct resolver *r)
{
	CLEANUP_VEC struct policy_urls urls = {0};
	CLEANUP_VEC VEC(struct policy_url) all = {0};

	policy_urls(r->ast, r->diag, &urls);
	vec_each (&urls, one)
		vec_push(&all, one->url);
	r->feeds_left_out = diag_errors(r->diag);
	if (all.n && r->env->fetch && !r->feeds_left_out)
		r->env->fetch(r->env->ctx, all.at, all.n);
}
