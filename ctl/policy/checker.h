// SPDX-License-Identifier: GPL-2.0-only
// Shared by the parts of check.
#pragma once

#include <stdbool.h>

#include "ctl/policy/ast.h"
#include "ctl/policy/expand.h"

struct checker {
	struct ast *ast;
	struct diag *diag;
	struct expander expander;
	size_t suggestions; // comparisons made for "did you mean", which has a budget
};

// ---- check_names.c ------------------------------------------------------------------------------

void check_names(struct checker *c); // indexes, duplicates, limits, unknown references, loops

enum check_space { SPACE_DEFINES, SPACE_SETS, SPACE_SERVICES, SPACE_RULES };
// ", did you mean '@bogons' (edge.weir:6)?", or "". In the ast's pool.
const char *check_suggest(struct checker *c, enum check_space space, const char *sign,
			  const char *word);

// ---- check_address.c ----------------------------------------------------------------------------

enum check_side { SIDE_FROM, SIDE_TO, SIDE_SET, SIDE_VIP, SIDE_SOURCE };
// The items of an address list: services and dynamic sets only where they are allowed, form of host
// names. False with errors queued.
bool check_addresses(struct checker *c, const struct ast_list *list, enum check_side side);

// ---- statements ---------------------------------------------------------------------------------
// Each queues errors and marks a statement that has one as broken.

void check_rule(struct checker *c, struct ast_rule *rule);    // check_rule.c
void check_service(struct checker *c, struct ast_service *a); // check_service.c
void check_expect(struct checker *c, struct ast_expect *a);   // check_expect.c
void check_identities(struct checker *c); // sets them for all rules (check_identities.c)
