// SPDX-License-Identifier: GPL-2.0-only
// Checks all that a policy shows without host names, list files and /etc/services.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/ast.h"
#include "ctl/policy/resolved.h"

// Fills the ast's indexes and set order, queues errors and warnings, and returns a draft for
// policy_resolve: rules in text order with all values but addresses and ports; interfaces, settings
// and dynamic sets are complete. Never NULL. Nodes with errors are marked broken.
struct resolved *policy_check(struct ast *ast, struct diag *diag);
