// SPDX-License-Identifier: GPL-2.0-only
// Would this policy lock the operator out? Its program is asked before the switch.
#pragma once

#include "ctl/control/apply_result.h"
#include "ctl/control/candidate.h"

// Runs the session's packets (if they come in where the policy is), the resolvers' answers and the
// gateways' neighbour discovery through the candidate's test program. A policy that drops the
// session's packets, or a remote session that cannot be placed without a trial, is ERR_REFUSED
// unless forced; the rest become warnings.
int lockout_check(struct candidate *c, const struct instance *i, const struct apply_options *o,
		  struct apply_result *ret, struct err *err);
