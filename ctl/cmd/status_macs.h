// SPDX-License-Identifier: GPL-2.0-only
// The alarms of weir status about devices above the interfaces that have changed.
#pragma once

#include "ctl/cmd/alerts.h"
#include "ctl/control/macs.h"
#include "ctl/datapath/reach.h"

// about, reach: of the active policy.
void status_macs_alarms(const struct instance *i, const struct devices *devices,
			const struct generation_about *about, const struct reach *reach,
			alarm_adder *add, void *ctx);
