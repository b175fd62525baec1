// SPDX-License-Identifier: GPL-2.0-only
// The sources of fullnat as addresses of this host: whether answers arrive, and whether this host
// uses their ports too.
#pragma once

#include "ctl/base/err.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/sentences.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/lb_state.h"
#include "ctl/table/nat_plan.h"

// Adds a sentence for each source of the wish that is no address of this host, and for each from
// which this host itself sends to a backend of lb, or that a socket has with a port that
// clients can get. A question that the kernel does not answer adds none.
void nat_sources_warn(const struct nat_wish *w, const struct lb_state *lb, struct sentences *ret);
// The same for each source in the table that this host itself uses.
void nat_sources_clashes(const struct nat_reading *r, const struct lb_state *lb,
			 struct sentences *ret);
// Adds a sentence for each source that no policy has any more and that connections still use. 0 or
// -errno with err set.
int nat_sources_left(const struct instance *i, struct sentences *ret, struct err *err);
