// SPDX-License-Identifier: GPL-2.0-only
// Where frames to a destination go: all that a program needs to send them without the kernel.
//
// The answer holds now; nothing follows later changes.
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

#define NEXTHOP_WAIT_MS 1000 // default time for neighbours to answer

enum nexthop_xmit {
	NEXTHOP_XMIT_UNKNOWN, // a kernel before 6.3, and an unknown driver
	NEXTHOP_XMIT_NO,      // frames that a native program redirects to the egress get lost
	NEXTHOP_XMIT_YES,
};

struct nexthop {
	bool local;             // the destination is this host: nothing but source is filled in
	uint32_t ifindex;       // egress as XDP sends to it: of a VLAN device the device below
	char name[IF_NAMESIZE]; // of the egress
	char kind[16];          // kind of the egress, as in struct link: "veth"
	uint16_t vlan;          // 802.1Q tag that frames have to carry, 1 to 4095; 0: none
	uint8_t mac_own[6];     // source address of the frames
	uint8_t mac[6];         // MAC address of the next hop, network order as on the wire
	uint32_t mtu;           // bytes of IP: the least of route, its device and the egress
	bool mtu_of_route;      // only the MTU of the route
	struct addr gateway; // family 0: the destination is on the link. May be of the other family
	struct addr source;  // what this host would send from; family 0: unknown
	enum nexthop_xmit xmit;
};

struct nexthop_answer {
	int code;    // 0: hop is there; else -errno and err is set
	bool silent; // code: the neighbour does not answer; hop is complete except mac
	struct nexthop hop;
	struct err err; // ERR_REFUSED or ERR_SYSTEM, with the command that repairs it
};

// Next hops of n destinations in the current network namespace, both families mixed; ret has room
// for n. Neighbours that the kernel does not know are asked for all at once and waited for, at most
// wait_ms for all together. 0, even if single destinations have none: their answers have the
// reason. -errno with err set: the kernel could not be asked.
int nexthop_find(const struct addr *dests, size_t n, uint32_t wait_ms, struct nexthop_answer *ret,
		 struct err *err);

// Can the driver of a device send redirected frames?
enum nexthop_xmit nexthop_xmit(uint32_t ifindex);

// The pure part: the values of a next hop from route and links, everything except mac and xmit.
// links: ordered by index, as link_list gives them. 0, or -errno with err set (route is not one
// that frames can take, or by a device that XDP cannot send to).
int nexthop_from(const struct addr *dest, const struct lookup *route, const struct link *links,
		 size_t n_links, struct nexthop *ret, struct err *err);
