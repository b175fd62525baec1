// SPDX-License-Identifier: GPL-2.0-only
// Reads all items of address lists once, so that all names are known before one is asked for.
#include "common/limits-policy.h"
#include "ctl/policy/resolver.h"

static void add_leaves(struct resolver *r, const struct ast_list *list, bool elements)
{
	struct leaves leaves = {0};

	if (elements)
		expand_elements(&r->expander, list, NULL, &leaves);
	else
		expand(&r->expander, list, POLICY_LIST_ITEMS, NULL, &leaves);
	vec_each (&leaves.all, leaf)
		resolve_item(r, leaf->item);
	leaves_free(&leaves);
}

void resolve_collect(struct resolver *r)
{
	vec_each (&r->ast->sets, set)
		add_leaves(r, &set->elements, true);
	vec_each (&r->ast->services, service)
		add_leaves(r, &service->vip, false);
	vec_each (&r->ast->rules, rule) {
		add_leaves(r, &rule->fields[AST_FROM], false);
		add_leaves(r, &rule->fields[AST_TO], false);
	}
	vec_each (&r->ast->expects, expect) {
		add_leaves(r, &expect->packet.from, false);
		add_leaves(r, &expect->packet.to, false);
	}
}
