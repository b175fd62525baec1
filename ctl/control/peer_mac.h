// SPDX-License-Identifier: GPL-2.0-only
// The MAC address from which packets of a peer come, as far as the kernel knows it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct peer_mac {
	bool known;      // the kernel has one: of the peer, or of the router to it
	bool shared;     // several routers have it (VRRP, HSRP, GLBP), and may send from their own
	bool several;    // the route has several next hops, and packets may come from each
	bool tunnel;     // its only next hop is on a device whose packets have no Ethernet header
	uint64_t mac;    // if it is known
	struct addr hop; // whose it is; family 0: there is no route
};

// As far as the kernel knows now. local: the own address to which the peer sends; routes may depend
// on it.
void peer_mac_find(const struct addr *peer, const struct addr *local, struct peer_mac *ret);
// The same of a host on the link of this interface.
void peer_mac_on_link(const struct addr *host, uint32_t ifindex, struct peer_mac *ret);

// The two ends of a connection.
struct peer_ends {
	struct addr peer, local; // local.family 0: not known
	uint32_t ifindex;        // on whose link the peer is; 0: routes decide
};
// Asks for all neighbours of the peers that the kernel does not know, and waits at most 500 ms.
void peer_mac_ask(const struct peer_ends *ends, size_t n);
// Can packets of the peer have no other MAC address?
bool peer_mac_is_certain(const struct peer_mac *m);
// Why it is not certain: "the kernel has no MAC address of 192.0.2.1".
typedef char peer_mac_text[160];
const char *peer_mac_why(const struct peer_mac *m, peer_mac_text buf); // returns buf
