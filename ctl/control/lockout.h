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

// ---- on a further interface ---------------------------------------------------------------------

// Would the active policy cut off the operator's login on a further interface?
// Its test program is asked before every attach, whatever command attaches.
struct gate {
	const struct session
		*session; // whose packets come through this namespace; NULL: no session's
	bool force;       // attach whatever the answer is
	bool trial;       // a login that is cut off recovers by itself
};

// Policy and overlay as they are now; during a trial the policy to come back as well. 0; or -EPERM
// with err set (ERR_REFUSED) for a login that would be cut off and one that cannot be placed. On
// trial the former is a sentence in ret_warning ("" before, at most size bytes). The caller holds
// the lock.
int gate_check(const struct instance *i, const struct link *link, const struct gate *gate,
	       char *ret_warning, size_t size, struct err *err);
