// SPDX-License-Identifier: GPL-2.0-only
// Finds the files of includes: relative paths, patterns, loops, depth.
#include "ctl/policy/source.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

static int system_read(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		       struct err *err)
{
	return file_read(path, max, ret_text, ret_len, err);
}

static int system_glob(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	glob_t found;
	int code = glob(pattern, GLOB_NOSORT, NULL, &found);

	if (code == GLOB_NOMATCH) {
		*ret = NULL;
		*ret_n = 0;
		return 0;
	}
	if (code)
		return err_system(err, code == GLOB_NOSPACE ? ENOMEM : EIO, "cannot list '%s'",
				  pattern);
	*ret = mem_zalloc(found.gl_pathc, sizeof(**ret));
	*ret_n = found.gl_pathc;
	for (size_t i = 0; i < found.gl_pathc; i++)
		(*ret)[i] = mem_strdup(found.gl_pathv[i]);
	globfree(&found);
	return 0;
}

const struct source_reader source_system = {.read = system_read, .glob = system_glob};

const char *source_path(struct arena *arena, const char *from, const char *path)
{
	const char *slash = from ? strrchr(from, '/') : NULL;

	if (!strcmp(path, "-") && !slash) // not standard input, which only the main file can be
		return arena_strdup(arena, "./-");
	if (path[0] == '/' || !slash)
		return arena_strdup(arena, path);
	return arena_printf(arena, "%.*s%s", (int)(slash + 1 - from), from, path);
}

// Ends one part of a path that is being normalised: "." is removed, ".." also removes the previous
// part.
static void end_part(struct text *t, size_t start)
{
	const char *part = t->at + start;
	size_t len = t->len - start;

	if (len == 1 && part[0] == '.') {
		t->len = start;
	} else if (len == 2 && part[0] == '.' && part[1] == '.' && start > 1) {
		size_t before = start - 1;

		while (before > 0 && t->at[before - 1] != '/')
			before--;
		if (strncmp(t->at + before, "../", 3) != 0)
			t->len = before;
	}
	t->at[t->len] = '\0';
}

// Normalises a path to find loops: no "//", no ".", no "..". Loops over links are found by the
// depth.
static char *tidy(const char *path)
{
	struct text t = {0};
	size_t start;

	text_add(&t, path[0] == '/' ? "/" : "");
	for (start = t.len; *path; path++) {
		if (*path != '/') {
			text_addc(&t, *path);
			continue;
		}
		if (t.len > start)
			end_part(&t, start);
		if (t.len && t.at[t.len - 1] != '/')
			text_addc(&t, '/');
		start = t.len;
	}
	if (t.len > start)
		end_part(&t, start);
	return text_take(&t);
}

static bool same_path(const char *a, const char *b)
{
	CLEANUP_FREE char *tidy_a = tidy(a), *tidy_b = tidy(b);

	return !strcmp(tidy_a, tidy_b);
}

// "a.weir > b.weir > a.weir", when the path is open already.
static bool report_loop(struct source *s, struct diag_at at, const char *path)
{
	CLEANUP(text_free) struct text loop = {0};

	vec_each (&s->open, open) {
		if (!loop.len && !same_path(*open, path))
			continue;
		text_addf(&loop, "%s > ", *open);
	}
	if (!loop.len)
		return false;
	text_add(&loop, path);
	diag_error(s->diag, at, NULL, "'%s' includes itself: %s", path, text_get(&loop));
	return true;
}

static void report_unreadable(struct source *s, struct diag_at at, const struct err *err)
{
	diag_error(s->diag, at, err->hint[0] ? err->hint : NULL, "%s", err->text);
}

int source_enter(struct source *s, struct diag_at at, const char *path,
		 const struct diag_file **ret)
{
	CLEANUP_FREE char *text = NULL;
	struct err err = {0};
	size_t len = 0;
	int code;

	if (report_loop(s, at, path))
		return -ELOOP;
	if (s->open.n > POLICY_DEPTH) {
		diag_error(s->diag, at, NULL, "includes nested deeper than %d", POLICY_DEPTH);
		return -ELOOP;
	}
	if (++s->files > POLICY_FILES) {
		diag_error(s->diag, at, NULL, "more than %d files in one policy", POLICY_FILES);
		return -E2BIG;
	}
	code = s->reader->read(s->reader->ctx, path, POLICY_TEXT_BYTES, &text, &len, &err);
	if (code < 0) {
		report_unreadable(s, at, &err);
		return code;
	}
	*ret = diag_add_file(s->diag, path, text, len);
	vec_push(&s->open, arena_strdup(s->arena, path));
	return 0;
}

void source_leave(struct source *s)
{
	s->open.n--;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The pattern, in which the path of the including file is literal.
static const char *pattern_of(struct source *s, const char *from, const char *path)
{
	const char *slash = from && path[0] != '/' ? strrchr(from, '/') : NULL;
	CLEANUP(text_free) struct text t = {0};

	for (const char *at = from; slash && at <= slash; at++) {
		if (strchr("*?[\\", *at))
			text_addc(&t, '\\');
		text_addc(&t, *at);
	}
	text_add(&t, path);
	return arena_strdup(s->arena, text_get(&t));
}

int source_expand(struct source *s, struct diag_at at, const char *path, const char ***ret,
		  size_t *ret_n)
{
	const char *from = at.file ? at.file->name : NULL;
	struct err err = {0};
	char **found = NULL;
	size_t n = 0;
	int code;

	if (!strpbrk(path, "*?[")) {
		*ret = mem_zalloc(1, sizeof(**ret));
		(*ret)[0] = source_path(s->arena, from, path);
		*ret_n = 1;
		return 0;
	}
	code = s->reader->glob(s->reader->ctx, pattern_of(s, from, path), &found, &n, &err);
	if (code < 0) {
		report_unreadable(s, at, &err);
		return code;
	}
	*ret = mem_zalloc(n, sizeof(**ret));
	*ret_n = n;
	for (size_t i = 0; i < n; i++) {
		(*ret)[i] = arena_strdup(s->arena, found[i]);
		free(found[i]);
	}
	free(found);
	qsort(*ret, n, sizeof(**ret), compare_paths);
	return 0;
}

void source_free(struct source *s)
{
	vec_free(&s->open);
}
