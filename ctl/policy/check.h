// SPDX-License-Identifier: GPL-2.0-only
// Checks everything that needs only the text of a policy: names, missing words, words that exclude
// each other.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/ast.h"

// Queues errors and warnings, and marks the nodes with errors as broken. Fills the ast's indexes,
// the order of its sets and the identities of its rules.
// may_be_empty: a policy without rule, default and service is not an error.
void policy_check(struct ast *ast, bool may_be_empty, struct diag *diag);
