// SPDX-License-Identifier: GPL-2.0-only
// Would the active policy cut off the operator's login on a further interface?
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/link.h"
#include "ctl/net/session.h"

// Its test program is asked before every attach, whatever command attaches.
struct gate {
	const struct session
		*session; // whose packets come through this namespace; NULL: no session's
	bool force;       // attach whatever the answer is
	bool trial;       // a login that is cut off recovers by itself
};

// Policy and overlay as they are now; during a trial the policy to come back as well. 0; or -EPERM
// with err set (ERR_REFUSED) for a login that would be cut off and one that cannot be placed. On
// trial the former, and a MAC address that is not certain and may decide, are a sentence in
// ret_warning ("" before, at most size bytes). The caller holds the lock.
int gate_check(const struct instance *i, const struct link *link, const struct gate *gate,
	       char *ret_warning, size_t size, struct err *err);

// Before the lock is taken: asks for the MAC address of the login's neighbour if the kernel does
// not know it, and waits half a second at most.
void gate_prepare(const struct session *s, bool force);
