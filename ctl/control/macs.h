// SPDX-License-Identifier: GPL-2.0-only
// The devices above the interfaces of this host: their MAC addresses, whether they forward, which
// frames they get, members of bonds.
//
// Services and answers take no frames to other stations, so they need the MAC addresses of VLANs,
// bridges and macvlans. The exemption of packets to this host needs to know which devices forward.
// `unroutable` compares the device of a route with the devices that get the frame. Frames of a bond
// arrive on its members.
#pragma once

#include "ctl/control/devices.h"
#include "ctl/datapath/routed.h"

// Tells the datapath what has changed. The caller holds the lock. 0 or -errno with err set.
int macs_write(const struct instance *i, const struct devices *devices, struct err *err);
// Asks the kernel first.
int macs_refresh(const struct instance *i, struct err *err);

// Is there an interface whose addresses are others than the datapath knows, or have no room there,
// or a bond, one of several, with a member that it does not know? Its number, else 0.
uint32_t macs_stale(const struct instance *i, const struct devices *devices);

// Does the datapath have the devices above an interface that a route can name?
enum macs_routes {
	MACS_ROUTES_KNOWN,
	MACS_ROUTES_STALE,     // it has others, or not all
	MACS_ROUTES_ELSEWHERE, // routes of a VRF, or ports of another switch, decide: not compared
	MACS_ROUTES_FULL,      // with the devices of all interfaces there is no room for them
};
// want: the present devices of all interfaces. Pure.
enum macs_routes macs_routes_of(const struct routes *want, const struct routes *there,
				uint32_t number);
// By number; MACS_ROUTES_KNOWN also where there is no interface, and for all if the kernel or the
// map cannot be read.
void macs_routes(const struct instance *i, const struct devices *devices,
		 enum macs_routes ret[WEIR_IFACES]);
bool macs_stale_routes(const struct instance *i, const struct devices *devices);
