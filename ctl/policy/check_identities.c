// SPDX-License-Identifier: GPL-2.0-only
// Gives each rule its identity: its name, or its text with a number where several have it.

#include "ctl/base/mem.h"
#include "ctl/policy/checker.h"

#define BY_NAME (INDEX_NONE - 1) // no rule has this number

static void number_text(struct checker *c, struct ast_rule *rule, uint32_t number, uint32_t *uses,
			struct index *taken)
{
	do {
		uint32_t n = ++*uses;

		rule->identity = n == 1 ? rule->text
					: arena_printf(&c->ast->strings, "%s #%u", rule->text, n);
	} while (index_add(taken, rule->identity, number) != number);
}

void check_identities(struct checker *c)
{
	size_t n = c->ast->rules.n;
	CLEANUP_FREE uint32_t *uses = mem_zalloc(n, sizeof(*uses)); // per text, at its first rule
	struct index taken = {0}, texts = {0};

	for (size_t i = 0; i < n; i++)
		if (c->ast->rules.at[i].name)
			index_add(&taken, c->ast->rules.at[i].name, BY_NAME);
	for (size_t i = 0; i < n; i++) {
		struct ast_rule *rule = &c->ast->rules.at[i];

		rule->identity = rule->name ? rule->name : "";
		if (rule->quick)
			rule->text = rule->quick;
		if (rule->name || rule->broken)
			continue;
		number_text(c, rule, (uint32_t)i, &uses[index_add(&texts, rule->text, (uint32_t)i)],
			    &taken);
	}
	index_free(&taken);
	index_free(&texts);
}
