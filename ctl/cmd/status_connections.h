// SPDX-License-Identifier: GPL-2.0-only
// `over N connections` of the active policy in weir status: its table, and what is wrong with it.
#pragma once

#include "ctl/cmd/alerts.h"
#include "ctl/datapath/connections.h"

// All zero where it cannot be read.
struct connections_state status_connections_read(const struct instance *i);
void status_connections_alarms(const struct connections_state *c, alarm_adder *alarm, void *status);
