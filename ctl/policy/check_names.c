// SPDX-License-Identifier: GPL-2.0-only
// Checks the four name spaces: duplicates, unknown names, loops through $ and @.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/policy/checker.h"

#define SUGGESTION_BUDGET 20000 // words compared: a thousand typos in a long policy stay cheap
#define LOOP_SHOWN        12    // names of a loop that are printed

static void add_name(struct checker *c, struct index *index, const char *name, size_t number,
		     struct diag_at at, struct diag_at first, const char *what)
{
	if (index_add(index, name, (uint32_t)number) == number)
		return;
	diag_error(c->diag, at, NULL, "duplicate %s '%s' (the first is at %s)", what, name,
		   diag_place(c->diag, first, false));
}

// The node that holds the name already, or the node itself.
#define FIRST(vec, index, name, i) \
	((vec).at[index_find(index, name) == INDEX_NONE ? (i) : index_find(index, name)].at)

static void fill_indexes(struct checker *c)
{
	struct ast *a = c->ast;

	for (size_t i = 0; i < a->defines.n; i++) {
		const struct ast_define *d = &a->defines.at[i];

		add_name(c, &a->define_index, d->name, i, d->at,
			 FIRST(a->defines, &a->define_index, d->name, i), "definition");
	}
	for (size_t i = 0; i < a->sets.n; i++) {
		const struct ast_set *s = &a->sets.at[i];

		add_name(c, &a->set_index, s->name, i, s->at,
			 FIRST(a->sets, &a->set_index, s->name, i), "set");
	}
	for (size_t i = 0; i < a->services.n; i++) {
		const struct ast_service *s = &a->services.at[i];

		add_name(c, &a->service_index, s->name, i, s->at,
			 FIRST(a->services, &a->service_index, s->name, i), "service");
	}
	for (size_t i = 0; i < a->rules.n; i++) {
		struct ast_rule *r = &a->rules.at[i];

		if (r->quick && r->name && index_find(&a->rule_index, r->name) != INDEX_NONE)
			r->name = NULL; // the policy has that name now
		if (r->name)
			add_name(c, &a->rule_index, r->name, i, r->at,
				 FIRST(a->rules, &a->rule_index, r->name, i), "rule");
	}
}

// ---- did you mean -------------------------------------------------------------------------------

struct declared {
	const char *name;
	struct diag_at at;
};

static size_t space_size(const struct ast *a, enum check_space space)
{
	switch (space) {
	case SPACE_DEFINES:
		return a->defines.n;
	case SPACE_SETS:
		return a->sets.n;
	case SPACE_SERVICES:
		return a->services.n;
	default:
		return a->rules.n;
	}
}

static struct declared candidate_at(const struct ast *a, enum check_space space, size_t i)
{
	switch (space) {
	case SPACE_DEFINES:
		return (struct declared){a->defines.at[i].name, a->defines.at[i].at};
	case SPACE_SETS:
		return (struct declared){a->sets.at[i].name, a->sets.at[i].at};
	case SPACE_SERVICES:
		return (struct declared){a->services.at[i].name, a->services.at[i].at};
	default:
		return (struct declared){a->rules.at[i].name, a->rules.at[i].at};
	}
}

const char *check_suggest(struct checker *c, enum check_space space, const char *sign,
			  const char *word)
{
	size_t n = space_size(c->ast, space), named = 0;
	CLEANUP_FREE const char **names = mem_zalloc(n, sizeof(*names));
	const char *near;

	c->suggestions += n;
	if (c->suggestions > SUGGESTION_BUDGET)
		return "";
	for (size_t i = 0; i < n; i++) {
		names[named] = candidate_at(c->ast, space, i).name;
		named += names[named] != NULL;
	}
	near = diag_nearest(word, names, named);
	for (size_t i = 0; near && i < n; i++)
		if (candidate_at(c->ast, space, i).name == near)
			return arena_printf(
				&c->ast->strings, ", did you mean '%s%s' (%s)?", sign, near,
				diag_place(c->diag, candidate_at(c->ast, space, i).at, false));
	return "";
}

// ---- references ---------------------------------------------------------------------------------

static void check_item(struct checker *c, const struct ast_item *item)
{
	bool define = item->kind == AST_DEFINE, other;
	const char *sign = define ? "$" : "@", *near;

	if (!define && item->kind != AST_SET)
		return;
	if (index_find(define ? &c->ast->define_index : &c->ast->set_index, item->word) !=
	    INDEX_NONE)
		return;
	other = index_find(define ? &c->ast->set_index : &c->ast->define_index, item->word) !=
		INDEX_NONE;
	if (other)
		near = arena_printf(&c->ast->strings, ", did you mean '%s%s'?", define ? "@" : "$",
				    item->word);
	else
		near = check_suggest(c, define ? SPACE_DEFINES : SPACE_SETS, sign, item->word);
	diag_error(c->diag, item->at, NULL, "unknown %s '%s%s'%s", define ? "definition" : "set",
		   sign, item->word, near);
}

static void check_list(struct checker *c, const struct ast_list *list)
{
	vec_each (&list->items, item)
		check_item(c, item);
}

static void check_references(struct checker *c)
{
	vec_each (&c->ast->defines, define)
		check_list(c, &define->list);
	vec_each (&c->ast->sets, set)
		check_list(c, &set->elements);
	vec_each (&c->ast->fragments, fragments)
		check_list(c, &fragments->proto);
	vec_each (&c->ast->rules, rule) {
		for (size_t i = 0; i < AST_FIELDS; i++)
			check_list(c, &rule->fields[i]);
	}
	vec_each (&c->ast->services, service) {
		check_list(c, &service->vip);
		check_list(c, &service->proto);
		check_list(c, &service->port);
		check_list(c, &service->source);
	}
	vec_each (&c->ast->expects, expect) {
		check_list(c, &expect->packet.from);
		check_list(c, &expect->packet.to);
	}
}

// ---- loops --------------------------------------------------------------------------------------

// Definitions and sets are the nodes of one graph: numbers from 0 for the definitions, from
// defines.n for the sets.
enum state { UNSEEN, OPEN, DONE };

struct visit {
	uint32_t node;
	size_t next; // item
};

struct loop_search {
	struct checker *c;
	uint8_t *state;
	VEC(struct visit) path;
};

static const struct ast_list *list_of(const struct ast *a, uint32_t node)
{
	return node < a->defines.n ? &a->defines.at[node].list
				   : &a->sets.at[node - a->defines.n].elements;
}

static void add_node(struct text *t, const struct ast *a, uint32_t node)
{
	if (node < a->defines.n)
		text_addf(t, "$%s", a->defines.at[node].name);
	else
		text_addf(t, "@%s", a->sets.at[node - a->defines.n].name);
}

// The path from the node to the item that leads back to it.
static void report_loop(struct loop_search *s, uint32_t node, const struct ast_item *item)
{
	CLEANUP(text_free) struct text loop = {0};
	size_t from = s->path.n, shown = 0;

	while (s->path.at[--from].node != node)
		;
	for (size_t i = from; i < s->path.n; i++, shown++) {
		if (shown == LOOP_SHOWN) {
			text_addf(&loop, "... (%zu in all) > ", s->path.n - from);
			break;
		}
		add_node(&loop, s->c->ast, s->path.at[i].node);
		text_add(&loop, " > ");
	}
	add_node(&loop, s->c->ast, node);
	diag_error(s->c->diag, item->at, NULL, "circular reference: %s", text_get(&loop));
}

static void enter(struct loop_search *s, uint32_t node)
{
	s->state[node] = OPEN;
	vec_push(&s->path, ((struct visit){.node = node}));
}

static void leave(struct loop_search *s)
{
	uint32_t node = vec_last(&s->path)->node;
	size_t defines = s->c->ast->defines.n;

	s->state[node] = DONE;
	if (node >= defines)
		vec_push(&s->c->ast->set_order, (uint32_t)(node - defines));
	s->path.n--;
}

static void follow(struct loop_search *s, const struct ast_item *item)
{
	const struct ast *a = s->c->ast;
	uint32_t node = INDEX_NONE;

	if (item->kind == AST_DEFINE)
		node = index_find(&a->define_index, item->word);
	else if (item->kind == AST_SET)
		node = index_find(&a->set_index, item->word);
	if (node == INDEX_NONE)
		return;
	if (item->kind == AST_SET)
		node += (uint32_t)a->defines.n;
	if (s->state[node] == OPEN)
		report_loop(s, node, item);
	else if (s->state[node] == UNSEEN)
		enter(s, node);
}

static void search_from(struct loop_search *s, uint32_t node)
{
	if (s->state[node] != UNSEEN)
		return;
	enter(s, node);
	while (s->path.n) {
		struct visit *v = vec_last(&s->path);
		const struct ast_list *list = list_of(s->c->ast, v->node);

		if (v->next == list->items.n)
			leave(s);
		else
			follow(s, &list->items.at[v->next++]);
	}
}

static void check_loops(struct checker *c)
{
	size_t n = c->ast->defines.n + c->ast->sets.n;
	struct loop_search s = {.c = c, .state = mem_zalloc(n, 1)};

	for (size_t i = 0; i < n; i++)
		search_from(&s, (uint32_t)i);
	free(s.state);
	vec_free(&s.path);
}

void check_names(struct checker *c)
{
	fill_indexes(c);
	check_references(c);
	check_loops(c);
}
