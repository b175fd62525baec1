// SPDX-License-Identifier: GPL-2.0-only
// The order in which a policy is checked: names first, since everything else needs them.
#include "ctl/policy/check.h"

#include "ctl/policy/checker.h"

struct place check_place(const struct checker *c, struct diag_at at, uint32_t line)
{
	// The diag may have had files before; those of a policy follow each other.
	if (!at.file)
		return (struct place){0};
	return (struct place){.file = (uint16_t)(at.file->index - c->ast->files.at[0]->index),
			      .line = line};
}

struct value check_value(struct checker *c, struct diag_at use)
{
	return (struct value){.diag = c->diag, .expander = &c->expander, .r = c->r, .use = use};
}

static void check_rules(struct checker *c)
{
	const struct ast *ast = c->ast;

	check_identities(c);
	c->r->n_rules = ast->rules.n;
	c->r->rules = arena_zalloc(&c->r->memory, ast->rules.n, sizeof(*c->r->rules));
	for (size_t i = 0; i < ast->rules.n; i++) {
		c->r->rules[i].text_index = (uint32_t)i;
		check_rule(c, &ast->rules.at[i], &c->r->rules[i]);
	}
}

struct resolved *policy_check(struct ast *ast, struct diag *diag)
{
	struct checker c = {.ast = ast, .diag = diag, .r = mem_new(struct resolved)};

	c.expander.ast = ast;
	check_names(&c);
	check_interfaces(&c);
	check_settings(&c);
	check_sets(&c);
	check_rules(&c);
	check_services(&c);
	check_expects(&c);
	expander_free(&c.expander);
	return c.r;
}
