// SPDX-License-Identifier: GPL-2.0-only
// What stands above this host's interfaces: the MAC addresses of VLANs, bridges and macvlans, for services and
// answers, which take no frames to other stations; and which of them forward, for what is exempt unless it does
// not stay here. And the members of bonds, whose frames are the bond's.
#pragma once

#include "ctl/datapath/instance.h"

// Asks the kernel and tells the datapath what has changed. The caller holds the lock. 0 or -errno with err set.
int macs_refresh(const struct instance *i, struct err *err);

// Is there an interface whose addresses are others than the datapath knows, or have no room there, or a bond, one
// of several, with a member that it does not know? Its number, else 0.
uint32_t macs_stale(const struct instance *i);
