// SPDX-License-Identifier: GPL-2.0-only
// Walks over all address lists before a name is resolved: finds all items, and the items that drop
// and reject rules use, since some addresses of their answers are left out.

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/resolver.h"

static void raise(enum policy_use *to, enum policy_use use)
{
	*to = use > *to ? use : *to;
}

static void use_host(struct host *host, enum policy_use use, struct diag_at at)
{
	if (use == POLICY_DROPPED && host->use < use)
		host->dropped_at = at;
	raise(&host->use, use);
}

static void use_file(struct resolver *r, const struct list_file *file, enum policy_use use)
{
	if (file->item->wide)
		return;
	vec_each (&file->list.names, name) {
		uint32_t number = index_find(&r->host_index, name->name);

		if (number != INDEX_NONE)
			use_host(&r->hosts.at[number], use, file->item->at);
	}
}

static void use_leaf(struct resolver *r, const struct leaf *leaf, enum policy_use use)
{
	uint32_t number = resolve_item(r, leaf->item);
	const struct item_value *value = &r->items.at[number];

	if (value->broken || leaf->negated)
		return;
	if (value->kind == VALUE_HOST && !leaf->item->wide)
		use_host(&r->hosts.at[value->number], use, leaf->item->at);
	else if (value->kind == VALUE_FILE)
		use_file(r, &r->lists.at[value->number], use);
	else if (value->kind == VALUE_SET)
		raise(&r->sets[value->number].use, use);
}

static void use_leaves(struct resolver *r, const struct leaves *leaves, enum policy_use use)
{
	if (leaves->negated)
		return;
	vec_each (&leaves->all, leaf)
		use_leaf(r, leaf, use);
}

static void use_list(struct resolver *r, const struct ast_list *list, enum policy_use use)
{
	struct leaves leaves = {0};

	if (use == POLICY_WHOLE)
		return;
	expand(&r->expander, list, POLICY_LIST_ITEMS, NULL, &leaves);
	use_leaves(r, &leaves, use);
	leaves_free(&leaves);
}

static void use_rule(struct resolver *r, const struct ast_rule *rule)
{
	enum policy_use use = resolve_use_of_rule(rule);

	use_list(r, &rule->fields[AST_FROM], use);
	use_list(r, &rule->fields[AST_TO], use);
}

// The set hands its use on to what it contains.
static void use_elements(struct resolver *r, uint32_t number)
{
	const struct set_value *set = &r->sets[number];
	struct leaves leaves = {0};

	if (set->use == POLICY_WHOLE || !ast_set_is_addresses(&r->ast->sets.at[number]))
		return;
	if (!expand_elements(&r->expander, &r->ast->sets.at[number].elements, NULL, &leaves))
		use_leaves(r, &leaves, set->use);
	leaves_free(&leaves);
}

void resolve_uses(struct resolver *r)
{
	r->sets = mem_zalloc(r->ast->sets.n, sizeof(*r->sets));
	vec_each (&r->ast->rules, rule)
		use_rule(r, rule);
	vec_each (&r->ast->expects, expect) {
		enum policy_use use = resolve_use_of_expect(expect);

		use_list(r, &expect->packet.from, use);
		use_list(r, &expect->packet.to, use);
	}
	// Each set before those that it names.
	for (size_t n = r->ast->set_order.n; n; n--)
		use_elements(r, r->ast->set_order.at[n - 1]);
}

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
		if (ast_set_is_addresses(set))
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
