// SPDX-License-Identifier: GPL-2.0-only
// The order in which a policy is checked: names first, since everything else needs them.
#include "ctl/policy/check.h"

#include "ctl/policy/checker.h"

void policy_check(struct ast *ast, struct diag *diag)
{
	struct checker c = {.ast = ast, .diag = diag, .expander.ast = ast};

	check_names(&c);
	check_identities(&c);
	vec_each (&ast->sets, set)
		if (!set->dynamic)
			check_addresses(&c, &set->elements, SIDE_SET);
	vec_each (&ast->rules, rule)
		check_rule(&c, rule);
	vec_each (&ast->services, service)
		check_service(&c, service);
	vec_each (&ast->expects, expect)
		check_expect(&c, expect);
	expander_free(&c.expander);
}
