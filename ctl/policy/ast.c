// SPDX-License-Identifier: GPL-2.0-only
// Makes and frees the ast.
#include "ctl/policy/ast.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/mem.h"

struct ast *ast_new(void)
{
	return mem_new(struct ast);
}

static void free_rules(struct ast *ast)
{
	vec_each (&ast->rules, rule) {
		for (size_t i = 0; i < AST_FIELDS; i++)
			vec_free(&rule->fields[i].items);
	}
	vec_free(&ast->rules);
}

static void free_services(struct ast *ast)
{
	vec_each (&ast->services, service) {
		vec_free(&service->vip.items);
		vec_free(&service->proto.items);
		vec_free(&service->port.items);
		vec_free(&service->source.items);
		vec_free(&service->backends);
	}
	vec_free(&ast->services);
}

static void free_expects(struct ast *ast)
{
	vec_each (&ast->expects, expect) {
		vec_free(&expect->packet.from.items);
		vec_free(&expect->packet.to.items);
		vec_free(&expect->packet.flags.items);
		vec_free(&expect->packet.type.items);
	}
	vec_free(&ast->expects);
}

static void free_lists(struct ast *ast)
{
	vec_each (&ast->defines, define)
		vec_free(&define->list.items);
	vec_each (&ast->sets, set)
		vec_free(&set->elements.items);
	vec_each (&ast->defaults, d)
		vec_free(&d->on.items);
	vec_each (&ast->fragments, fragments)
		vec_free(&fragments->proto.items);
	vec_free(&ast->defines);
	vec_free(&ast->sets);
	vec_free(&ast->defaults);
	vec_free(&ast->fragments);
}

static void ast_free(struct ast *ast)
{
	free_rules(ast);
	free_services(ast);
	free_expects(ast);
	free_lists(ast);
	vec_free(&ast->interfaces);
	vec_free(&ast->files);
	vec_free(&ast->set_order);
	index_free(&ast->define_index);
	index_free(&ast->set_index);
	index_free(&ast->service_index);
	index_free(&ast->rule_index);
	arena_free(&ast->strings);
	free(ast);
}

void ast_cleanup(struct ast **ast)
{
	if (*ast)
		ast_free(*ast);
}

void ast_replace_interfaces(struct ast *ast, const char *const *names, size_t n)
{
	vec_free(&ast->interfaces);
	for (size_t i = 0; i < n; i++)
		vec_push(&ast->interfaces,
			 ((struct ast_interface){.name = arena_strdup(&ast->strings, names[i])}));
}

enum ast_word ast_word_of(const char *word)
{
	size_t len = strlen(word);

	if (!strcmp(word, "any"))
		return AST_ANY;
	if (!strcmp(word, "self"))
		return AST_SELF;
	if (!addr_looks_like(word, len))
		return strchr(word, '.') ? AST_NAME : AST_LABEL;
	return strchr(word, '-') && !strchr(word, '%') ? AST_RANGE : AST_ADDRESS;
}

uint32_t ast_find_rule(const struct ast *ast, const char *name)
{
	uint32_t number = index_find(&ast->rule_index, name);

	for (size_t i = 0; number == INDEX_NONE && i < ast->rules.n; i++)
		if (!strcmp(ast->rules.at[i].identity, name))
			number = (uint32_t)i;
	return number;
}

const struct set_kind set_kinds[AST_SET_KINDS] = {
	[AST_SET_ADDRESSES] = {.what = "addresses"},
	[AST_SET_PORTS] = {"ports", "ports", "write port @NAME", "80, 443", "write 0-65535, not …"},
	[AST_SET_MACS] = {"macs", "MAC addresses", "write mac @NAME",
			  "02:00:5e:00:53:01, 02:00:5e:00:53:02",
			  "write 00:00:00:00:00:00-ff:ff:ff:ff:ff:ff, not …"},
	[AST_SET_PAIRS] = {"pairs", "pairs", "write from @NAME or to @NAME",
			   "192.0.2.1 port 80, 2001:db8::1 port 443", NULL},
};
