// SPDX-License-Identifier: GPL-2.0-only
// Parses files into the ast.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/ast.h"
#include "ctl/policy/source.h"

// Reads the policy and its includes. Every error is queued in diag; what could be understood is in
// the ast, which is never NULL. The ast and diag belong to the caller; the ast must die first.
struct ast *policy_parse(const char *path, const struct source_reader *reader, struct diag *diag);

struct policy_quick;
// Adds quick rules to the rules of the ast. A text has one rule and nothing else, without `always`
// and without names that must be looked up.
void policy_parse_quick(struct ast *ast, const struct policy_quick *rules, size_t n,
			struct diag *diag);
