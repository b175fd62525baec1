// SPDX-License-Identifier: GPL-2.0-only
// The MAC address from which packets of a peer come, as far as the kernel knows it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct peer_mac {
	bool known;      // the kernel has one: of the peer, or of the router to it
	bool shared;     // several routers have it (VRRP, HSRP, GLBP), and may send from their own
	uint64_t mac;    // if it is known
	struct addr hop; // whose it is; family 0: there is no route
};

// Asks for an unknown neighbour, and waits at most wait_ms.
void peer_mac_find(const struct addr *peer, uint32_t wait_ms, struct peer_mac *ret);
// The same of a host on the link of this interface.
void peer_mac_on_link(const struct addr *host, uint32_t ifindex, uint32_t wait_ms,
		      struct peer_mac *ret);
// Can packets of the peer have no other MAC address?
bool peer_mac_is_certain(const struct peer_mac *m);
// Why it is not certain: "the kernel has no MAC address of 192.0.2.1".
typedef char peer_mac_text[160];
const char *peer_mac_why(const struct peer_mac *m, peer_mac_text buf); // returns buf
