// SPDX-License-Identifier: GPL-2.0-only
// VLAN tags that an offload removes before XDP sees the frame, and what is lost with them.
//
// The kernel keeps such a tag beside the frame. A program sees no tag, so `vlan` does not match. In
// native mode, frames that the program sends or redirects have no tag either: a client beyond a
// VLAN device above the interface never gets them. In generic mode the kernel sends the tag with
// the frame (tests/vm/drivers).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/abi.h"
#include "ctl/net/link.h"

// Which offload removes the tags of frames that arrive on an interface.
struct tags {
	bool removed;
	bool unsure;              // the peer of a veth is in another network namespace
	char device[IF_NAMESIZE]; // whose offload it is: the interface, or the peer of a veth
	const char *feature;      // "rxvlan" or "txvlan", for ethtool -K
};
// As ethtool reports it now.
void tags_read(const struct link *link, struct tags *ret);

// The first VLAN device above an interface, also by a bridge or bond that the interface is a port
// of; NULL: no such device. Pure: links are all of the namespace.
const struct link *tags_vlan_above(const struct link *links, size_t n, const struct link *link);

// Features of a policy that need the tags.
struct tags_use {
	bool rejects, services, matches; // matches: rules with `vlan`
};
// A warning, or NULL: nothing is lost. The caller frees it. vlan: the VLAN device above; NULL: no
// such device. Pure.
char *tags_warning(const struct tags *t, const char *ifname, enum iface_mode mode, const char *vlan,
		   const struct tags_use *use);
