// SPDX-License-Identifier: GPL-2.0-only
// The feeds of a policy as written.
#pragma once

#include "ctl/policy/ast.h"
#include "ctl/policy/env.h"

struct policy_urls_one {
	struct policy_url url; // strings of the ast
	const struct ast_item *item;
};

struct policy_urls {
	struct policy_urls_one *at;
	size_t n, cap;
};

// Each URL once, with the conditions of its first occurrence; a contradicting one is an error. diag
// NULL: no error is queued.
void policy_urls(const struct ast *ast, struct diag *diag, struct policy_urls *ret);
