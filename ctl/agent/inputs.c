// SPDX-License-Identifier: GPL-2.0-only
// Parses a policy with a reader that writes down what it was asked for.
#include "ctl/agent/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/parse.h"

static int read_noted(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		      struct err *err)
{
	struct inputs *in = ctx;

	vec_push(&in->paths, mem_strdup(path));
	return source_system.read(source_system.ctx, path, max, ret_text, ret_len, err);
}

static int glob_noted(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	struct inputs *in = ctx;

	vec_push(&in->patterns, mem_strdup(pattern));
	return source_system.glob(source_system.ctx, pattern, ret, ret_n, err);
}

static void add_item(struct inputs *in, struct arena *arena, const struct ast_item *item)
{
	in->places = in->places || item->kind == AST_GEO;
	if (item->kind == AST_FILE)
		vec_push(&in->paths,
			 mem_strdup(source_path(arena, item->at.file->name, item->word)));
}

static void add_lists(struct inputs *in, const struct ast *ast)
{
	struct arena arena = {0};

	vec_each (&ast->sets, set)
		vec_each (&set->elements.items, item)
			add_item(in, &arena, item);
	vec_each (&ast->defines, define)
		vec_each (&define->list.items, item)
			add_item(in, &arena, item);
	vec_each (&ast->rules, rule)
		for (size_t f = 0; f < AST_FIELDS; f++)
			vec_each (&rule->fields[f].items, item)
				add_item(in, &arena, item);
	arena_free(&arena);
}

static const char *copy_of(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static void add_feeds(struct inputs *in, const struct ast *ast)
{
	CLEANUP_VEC struct policy_urls urls = {0};

	policy_urls(ast, NULL, &urls);
	vec_each (&urls, one) {
		struct inputs_feed feed = {.url = one->url};

		feed.url.url = copy_of(one->url.url);
		feed.url.sha256 = copy_of(one->url.sha256);
		feed.url.ca = copy_of(one->url.ca);
		vec_push(&in->feeds, feed);
	}
}

void inputs_read(const char *path, struct inputs *ret)
{
	struct source_reader reader = {.read = read_noted, .glob = glob_noted, .ctx = ret};
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_AST struct ast *ast = policy_parse(path, &reader, diag);

	add_lists(ret, ast);
	add_feeds(ret, ast);
}

void inputs_read_feeds(const char *path, const struct source_reader *reader, struct inputs *ret)
{
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_AST struct ast *ast = policy_parse(path, reader, diag);

	add_feeds(ret, ast);
}

void inputs_free(struct inputs *in)
{
	vec_each (&in->paths, path)
		free(*path);
	vec_each (&in->patterns, pattern)
		free(*pattern);
	vec_each (&in->feeds, feed) {
		free((char *)feed->url.url);
		free((char *)feed->url.sha256);
		free((char *)feed->url.ca);
	}
	vec_free(&in->paths);
	vec_free(&in->patterns);
	vec_free(&in->feeds);
	in->places = false;
}
