// SPDX-License-Identifier: GPL-2.0-only
// The route to one address (RTM_GETROUTE, like `ip route get`).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct nlmsghdr;

enum lookup_kind {
	LOOKUP_UNICAST,
	LOOKUP_LOCAL,  // this host
	LOOKUP_GROUP,  // broadcast, multicast, anycast: no single host
	LOOKUP_REFUSE, // unreachable, prohibit, blackhole
	LOOKUP_ENCAP,  // the route encapsulates the packet (MPLS, seg6…), which XDP does not see
};

struct lookup {
	enum lookup_kind kind;
	uint32_t ifindex;    // device of the route: for a VLAN the VLAN device
	struct addr gateway; // family 0: the destination is on the link
	struct addr source;  // what this host would send from; family 0: unknown
	uint32_t mtu;        // MTU of the route, with the result of path MTU discovery; 0: unknown
};

// In the current network namespace. 0, or the kernel's -errno, without a message: -ENETUNREACH: no
// route; -EHOSTUNREACH, -EACCES, -EINVAL: an IPv4 route of type unreachable, prohibit, blackhole.
// Of a route with several next hops the kernel picks one.
int lookup_route(const struct addr *dest, struct lookup *ret);

// The answer in one RTM_NEWROUTE message. false: the message is another, or damaged.
bool lookup_from_message(const struct nlmsghdr *nlh, struct lookup *ret);
