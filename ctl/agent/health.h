// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that checks backends: what other parts may tell it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct agent;

// The neighbour is silent, which proves nothing: the backends with this address are checked soon.
void agent_health_suspect(struct agent *a, const struct addr *neighbour);
// The backends whose next hop is on this device are down, or may recover.
void agent_health_link(struct agent *a, uint32_t ifindex, bool dead);
// Addresses or routes of this host have changed: checks may have to come from another one.
void agent_health_addresses(struct agent *a);
