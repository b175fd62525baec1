// SPDX-License-Identifier: GPL-2.0-only
// The order in which a policy is checked: names first, since everything else needs them.
#include "ctl/policy/check.h"

#include "ctl/policy/checker.h"

// An empty or truncated text must not replace a policy: a policy without a filter must be explicit.
static void check_empty(const struct checker *c)
{
	const struct ast *a = c->ast;
	struct diag_at at = {.file = a->files.n ? a->files.at[0] : NULL};

	if (a->rules.n == a->n_quick && !a->defaults.n && !a->services.n && !diag_errors(c->diag))
		diag_error(c->diag, at, "write 'default pass' if nothing shall be filtered",
			   "the policy has no rule, no 'default' and no 'service'");
}

void policy_check(struct ast *ast, bool may_be_empty, struct diag *diag)
{
	struct checker c = {.ast = ast, .diag = diag, .expander.ast = ast};

	if (!may_be_empty)
		check_empty(&c);
	check_names(&c);
	check_identities(&c);
	vec_each (&ast->sets, set)
		if (ast_set_is_addresses(set))
			check_addresses(&c, &set->elements, SIDE_SET);
	vec_each (&ast->rules, rule)
		check_rule(&c, rule);
	vec_each (&ast->services, service)
		check_service(&c, service);
	vec_each (&ast->expects, expect)
		check_expect(&c, expect);
	expander_free(&c.expander);
}
