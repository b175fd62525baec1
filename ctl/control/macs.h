// SPDX-License-Identifier: GPL-2.0-only
// The MAC addresses of this host's interfaces and of the devices above them, for services and answers, which
// take no frames to other stations.
#pragma once

#include "ctl/datapath/instance.h"

// Asks the kernel and tells the datapath what has changed. The caller holds the lock. 0 or -errno with err set.
int macs_refresh(const struct instance *i, struct err *err);

// Is there an interface whose addresses are others than the datapath knows, or have no room there? Its number,
// else 0.
uint32_t macs_stale(const struct instance *i);
