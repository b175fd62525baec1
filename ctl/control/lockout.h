// SPDX-License-Identifier: GPL-2.0-only
// Would this policy lock the operator out? Its program is asked before the switch.
#pragma once

#include "ctl/control/apply_result.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/link.h"
#include "ctl/net/session.h"

// Runs the session's packets (if they come in where the policy is), the resolvers' answers and the
// gateways' neighbour discovery through the candidate's test program. A policy that drops the
// session's packets, or a remote session that cannot be placed without a trial, is ERR_REFUSED
// unless forced; the rest become warnings. With o->quick, so is a new quick rule that drops the
// packets of any login over ssh. A quick rule that passes them until it ends is no reason to accept
// either.
int lockout_check(struct candidate *c, const struct instance *i, const struct apply_options *o,
		  struct apply_result *ret, struct err *err);

// Before the lock is taken: asks for the neighbours whose MAC addresses rules may ask for, and
// waits half a second at most.
void lockout_prepare(const struct candidate *c, const struct apply_options *o);
