// SPDX-License-Identifier: GPL-2.0-only
// Own addresses and default gateways of the current network namespace (rtnetlink).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

struct own_addr {
	struct addr addr;
	uint8_t prefix_len;
	uint32_t ifindex;
};

struct gateway {
	struct addr addr; // next hop of a default route; family 0 where the route is on-link
	uint32_t ifindex;
	uint32_t metric;
};

// All addresses of all interfaces (loopback included). The caller frees *ret.
int route_own_addrs(struct own_addr **ret, size_t *ret_n, struct err *err);
// The destinations for which this host accepts packets, except loopback addresses: its addresses,
// and prefixes with a local route (`ip route add local PREFIX dev lo`, an address with a prefix on
// lo). In order, each once. The caller frees *ret. 0 or -errno with err set.
int route_own_prefixes(struct prefix **ret, size_t *ret_n, struct err *err);
// Next hops of all default routes of the main table (multipath included), both families, best
// metric first. The caller frees *ret. 0 or -errno with err set.
int route_gateways(struct gateway **ret, size_t *ret_n, struct err *err);
// Does this host forward packets of the family (sysctl, any interface)?
bool route_forwards(uint8_t family);
// Those that come in on this device?
bool route_forwards_on(uint8_t family, const char *device);
// Has the device a switch, and is it off? A kernel without the family has no switch.
bool route_forwarding_is_off(uint8_t family, const char *device);

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
// The same for packets from this own address: rules may choose a table by it, and one of several
// next hops. -EINVAL also: it is not an address of this host (IPv4).
int lookup_route_from(const struct addr *dest, const struct addr *source, struct lookup *ret);
// Does the route have several next hops? Each packet may then take another one. false also: no
// route, or no answer.
bool lookup_has_choice(const struct addr *dest, const struct addr *source);

// The answer in one RTM_NEWROUTE message. false: the message is another, or damaged.
bool lookup_from_message(const struct nlmsghdr *nlh, struct lookup *ret);
