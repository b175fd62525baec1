// SPDX-License-Identifier: GPL-2.0-only
// Turns the checked ast into values: host names, list files, ports, sets.
#pragma once

#include <stddef.h>

#include "ctl/base/diag.h"
#include "ctl/policy/env.h"
#include "ctl/policy/resolved.h"

// Parses, checks and resolves a policy. ifaces: the interfaces of -i; n_ifaces 0: the interfaces of
// the text. All errors are queued; NULL if there are any.
struct resolved *policy_load(const char *path, const struct policy_env *env,
			     const char *const *ifaces, size_t n_ifaces, struct diag *diag);
