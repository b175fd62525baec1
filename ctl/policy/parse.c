// SPDX-License-Identifier: GPL-2.0-only
// Parses files statement by statement, so that an error costs its statement only.
#include "ctl/policy/parse.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/lines.h"
#include "ctl/base/mem.h"
#include "ctl/policy/env.h"
#include "ctl/policy/parser.h"

// Skips a statement with an error. A line that begins like a statement ends it too, since a brace
// or a line end may be missing.
static void recover(struct parser *p, const struct token *start)
{
	while (!parse_is(p, TOKEN_END) && !parse_is(p, TOKEN_EOF) &&
	       (p->at == start || !parse_starts_statement(p->at)))
		if (parse_next(p)->kind == TOKEN_OPEN)
			while (!parse_is(p, TOKEN_CLOSE) && !parse_is(p, TOKEN_EOF) &&
			       !parse_starts_statement(p->at))
				parse_next(p);
}

static void parse_version_line(struct parser *p)
{
	while (parse_accept(p, TOKEN_END))
		;
	if (!parse_accept_word(p, "version"))
		return;
	if (!parse_accept_word(p, "1"))
		parse_expected(p, "version 1", "this version of Weir reads only version 1");
	else if (!parse_at_end(p))
		parse_expected(p, "the end of the line", NULL);
	if (!parse_at_end(p))
		recover(p, NULL);
}

static void parse_file(struct ast *ast, struct source *source, struct diag_at at, const char *path);

// Reads the files of an "include" that has just been parsed.
static void include(struct parser *p)
{
	CLEANUP_FREE const char **paths = NULL;
	const struct token *name = p->include;
	size_t n = 0;

	p->include = NULL;
	// A path that cannot be read is not an error of syntax: the statement is complete.
	if (source_expand(p->source, name->at, name->text, &paths, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		parse_file(p->ast, p->source, name->at, paths[i]);
}

static void parse_statements(struct parser *p)
{
	parse_version_line(p);
	for (;;) {
		const struct token *start;

		while (parse_accept(p, TOKEN_END))
			;
		if (parse_is(p, TOKEN_EOF))
			return;
		start = p->at;
		if (!parse_statement(p)) {
			recover(p, start);
			continue;
		}
		if (p->include)
			include(p);
		if (!parse_at_end(p) && !parse_expected(p, "the end of the statement", NULL))
			recover(p, start);
	}
}

// A file of iptables would have an error in each line: one is better.
static bool refuse_iptables(struct diag *diag, const struct diag_file *file)
{
	static const char *const begins[] = {
		"*filter",
		"*nat",
		"*mangle",
		"*raw",
		"*security",
		"-A",
		"-P",
		"iptables",
		"ip6tables",
		"iptables-restore",
		"ip6tables-restore",
	};
	struct lines in = lines_of(file->text, file->len);
	struct word first;

	if (!lines_next(&in))
		return false;
	first = lines_word(&in);
	if (!word_is_one_of(first, begins, ARRAY_SIZE(begins)))
		return false;
	diag_error(diag,
		   (struct diag_at){file, (uint32_t)(first.at - file->text), (uint32_t)first.len},
		   "a rule of Weir: drop from 203.0.113.0/24 to port 22",
		   "this is iptables, not a policy");
	return true;
}

static void parse_file(struct ast *ast, struct source *source, struct diag_at at, const char *path)
{
	struct tokens tokens = {0};
	struct parser p = {.ast = ast, .diag = source->diag, .source = source};
	const struct diag_file *file;

	if (source_enter(source, at, path, &file) < 0)
		return;
	vec_push(&ast->files, file);
	if (!refuse_iptables(source->diag, file)) {
		lex(file, source->diag, &ast->strings, &tokens);
		p.at = tokens.all.at;
		parse_statements(&p);
		tokens_free(&tokens);
	}
	source_leave(source);
}

struct ast *policy_parse(const char *path, const struct source_reader *reader, struct diag *diag)
{
	struct ast *ast = ast_new();
	struct source source = {.reader = reader, .diag = diag, .arena = &ast->strings};

	parse_file(ast, &source, (struct diag_at){0}, path);
	source_free(&source);
	return ast;
}

// ---- quick rules --------------------------------------------------------------------------------

static bool is_looked_up(const struct ast_item *item)
{
	return item->kind == AST_HOST || item->kind == AST_GEO ||
	       (item->kind == AST_WORD && item->as_address == AST_NAME);
}

// The record of the policy has no answers for names that only a quick rule has.
static bool has_no_names(struct parser *p, const struct ast_list *list)
{
	vec_each (&list->items, item)
		if (is_looked_up(item))
			return parse_fail(
				p, item->at,
				"put it into a set of the policy, 'set evil { evil.example }', "
				"and write 'from @evil'; 'weir block' drops all its packets",
				"a quick rule cannot have host names, countries and "
				"autonomous systems");
	return true;
}

static bool parse_quick_rule(struct parser *p, struct ast_rule **ret)
{
	struct diag_at first = p->at->at;
	size_t before = p->ast->rules.n;
	bool ok = parse_rule(p);

	if (p->ast->rules.n == before)
		return false;
	*ret = vec_last(&p->ast->rules);
	if (!ok)
		return false;
	if ((*ret)->always)
		return parse_fail(p, first, "leave it out, or write the rule into the policy",
				  "a quick rule follows the entries, so it cannot be 'always'");
	while (parse_accept(p, TOKEN_END))
		;
	if (!parse_is(p, TOKEN_EOF))
		return parse_expected(p, "the end of the rule", NULL);
	return has_no_names(p, &(*ret)->fields[AST_FROM]) &&
	       has_no_names(p, &(*ret)->fields[AST_TO]);
}

static void parse_quick(struct ast *ast, const struct policy_quick *quick, struct diag *diag)
{
	const struct diag_file *file = diag_add_line(diag, quick->label, quick->text);
	struct parser p = {.ast = ast, .diag = diag};
	struct ast_rule *rule = NULL;
	struct tokens tokens = {0};
	bool ok;

	vec_push(&ast->files, file);
	lex(file, diag, &ast->strings, &tokens);
	p.at = tokens.all.at;
	ok = parse_quick_rule(&p, &rule);
	if (rule) {
		if (!ok)
			parse_break_rule(rule);
		rule->quick = arena_strdup(&ast->strings, quick->label);
		if (quick->name)
			rule->name = arena_strdup(&ast->strings, quick->name);
		ast->n_quick++;
	}
	tokens_free(&tokens);
}

void policy_parse_quick(struct ast *ast, const struct policy_quick *rules, size_t n,
			struct diag *diag)
{
	for (size_t i = 0; i < n; i++)
		parse_quick(ast, &rules[i], diag);
}
