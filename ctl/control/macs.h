// SPDX-License-Identifier: GPL-2.0-only
// The devices above the interfaces of this host: their MAC addresses, whether they forward, members
// of bonds.
//
// Services and answers take no frames to other stations, so they need the MAC addresses of VLANs,
// bridges and macvlans. The exemption of packets to this host needs to know which devices forward.
// Frames of a bond arrive on its members.
#pragma once

#include "ctl/control/devices.h"

// Tells the datapath what has changed. The caller holds the lock. 0 or -errno with err set.
int macs_write(const struct instance *i, const struct devices *devices, struct err *err);
// Asks the kernel first.
int macs_refresh(const struct instance *i, struct err *err);

// Is there an interface whose addresses are others than the datapath knows, or have no room there,
// or a bond, one of several, with a member that it does not know? Its number, else 0.
uint32_t macs_stale(const struct instance *i, const struct devices *devices);
