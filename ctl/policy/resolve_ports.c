// SPDX-License-Identifier: GPL-2.0-only
// Resolves ports, by number or by the name of their service, and sets of numbers.

#include <errno.h>

#include "ctl/base/mem.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/resolver.h"

#define SERVICES_BYTES (4u << 20)

static bool has_names(struct resolver *r, const struct ast_list *list, bool in_set);

static bool set_has_names(struct resolver *r, const char *name)
{
	const struct ast *ast = r->expander.ast;
	uint32_t number = index_find(&ast->set_index, name);

	return number != INDEX_NONE && ast->sets.at[number].kind == AST_SET_PORTS &&
	       has_names(r, &ast->sets.at[number].elements, true);
}

// in_set: a set contains no other.
static bool has_names(struct resolver *r, const struct ast_list *list, bool in_set)
{
	struct leaves leaves = {0};
	bool found = false;

	expand(&r->expander, list, POLICY_SET_ITEMS, NULL, &leaves);
	vec_each (&leaves.all, leaf) {
		const char *word = leaf->item->word;

		if (leaf->item->kind == AST_WORD)
			found = found || word[0] < '0' || word[0] > '9';
		else if (leaf->item->kind == AST_SET && !in_set)
			found = found || set_has_names(r, word);
	}
	leaves_free(&leaves);
	return found;
}

static void read_services(struct resolver *r, struct diag_at at)
{
	const struct source_reader *files = r->env->files ? r->env->files : &source_system;
	CLEANUP_FREE char *text = NULL;
	struct err err = {0};
	size_t len = 0;

	if (r->services_read)
		return;
	r->services_read = true;
	r->services.path = r->env->services ? r->env->services : SERVICES_PATH;
	if (files->read(files->ctx, r->services.path, SERVICES_BYTES, &text, &len, &err) < 0) {
		diag_error(r->diag, at, err.hint[0] ? err.hint : NULL, "%s", err.text);
		r->services_failed = true;
		return;
	}
	services_read(&r->services, text, len);
}

int resolve_ports(struct resolver *r, const struct ast_list *list, struct diag_at use,
		  const uint64_t protos[4], struct resolved_ranges *ret)
{
	struct value v = {.diag = r->diag,
			  .expander = &r->expander,
			  .r = r->r,
			  .use = use,
			  .protos = protos,
			  .services = &r->services};
	struct ranges ranges = {0};
	int code;

	if (has_names(r, list, false))
		read_services(r, list->at);
	if (r->services_failed)
		return -EINVAL;
	code = value_ranges(&v, &domain_port, list, &ranges);
	ret->given = true;
	ret->n = ranges.n;
	ret->at = arena_copy(&r->r->memory, ranges.at, ranges.n, sizeof(*ranges.at));
	ranges_free(&ranges);
	return code;
}

void resolve_number_set(struct resolver *r, uint32_t number)
{
	struct ast_set *set = &r->ast->sets.at[number];
	const struct set_kind *kind = &set_kinds[set->kind];
	struct value v = {
		.diag = r->diag, .expander = &r->expander, .r = r->r, .services = &r->services};
	CLEANUP(edges_free) struct edges edges = {0};

	if (!set->broken && !set->elements.items.n) {
		diag_error(r->diag, set->at, NULL, "set of %s '@%s' is empty", kind->what,
			   set->name);
		set->broken = true;
	}
	if (set->kind == AST_SET_PORTS && !set->broken && has_names(r, &set->elements, true))
		read_services(r, set->elements.at);
	set->broken = set->broken || (set->kind == AST_SET_PORTS && r->services_failed) ||
		      eval_elements(&v, set_domains[set->kind], set, &edges) < 0;
}
