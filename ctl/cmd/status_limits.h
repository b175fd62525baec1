// SPDX-License-Identifier: GPL-2.0-only
// weir status --limits: the entries in each set and table, and how many it can have.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/nat_reading.h"
#include "ctl/datapath/connections.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"

// about, connections: of the active policy; set_used: elements, as about->sets.
void status_limits_show(struct context *ctx, const struct instance *i,
			const struct generation_about *about, const size_t *set_used,
			const struct connections_state *connections, const struct nat_reading *nat);
