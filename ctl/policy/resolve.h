// SPDX-License-Identifier: GPL-2.0-only
// Turns the checked ast into values: host names, list files, ports, sets.
#pragma once

#include <stddef.h>

#include "ctl/base/diag.h"
#include "ctl/policy/ast.h"
#include "ctl/policy/env.h"
#include "ctl/policy/resolved.h"

// Makes the values of an ast that policy_check has seen. Every error is queued; NULL if there is one, those of parse and
// check included.
struct resolved *policy_resolve(struct ast *ast, const struct policy_env *env, struct diag *diag);

// All of it: parse, check, resolve. ifaces: those of -i, n_ifaces 0: those of the text. NULL when
// errors are queued.
struct resolved *policy_load(const char *path, const struct policy_env *env,
			     const char *const *ifaces, size_t n_ifaces, struct diag *diag);
