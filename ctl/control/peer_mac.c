// SPDX-License-Identifier: GPL-2.0-only
// Looks up routes and neighbours.
#include "ctl/control/peer_mac.h"

#include <stdio.h>

#include "ctl/base/mac.h"
#include "ctl/net/neigh.h"
#include "ctl/net/route.h"

void peer_mac_on_link(const struct addr *host, uint32_t ifindex, uint32_t wait_ms,
		      struct peer_mac *ret)
{
	struct neigh n = {.ifindex = ifindex, .addr = *host};

	*ret = (struct peer_mac){.hop = *host};
	if (neigh_resolve(&n, 1, wait_ms, NULL) || n.state != NEIGH_KNOWN)
		return;
	ret->known = true;
	ret->mac = mac_of_bytes(n.mac);
	ret->shared = mac_is_shared(ret->mac);
}

void peer_mac_find(const struct addr *peer, uint32_t wait_ms, struct peer_mac *ret)
{
	struct lookup route;

	*ret = (struct peer_mac){0};
	if (lookup_route(peer, &route) || route.kind != LOOKUP_UNICAST)
		return;
	peer_mac_on_link(route.gateway.family ? &route.gateway : peer, route.ifindex, wait_ms, ret);
}

bool peer_mac_is_certain(const struct peer_mac *m)
{
	return m->known && !m->shared;
}

const char *peer_mac_why(const struct peer_mac *m, peer_mac_text buf)
{
	addr_text hop;
	mac_text mac;

	if (m->known)
		snprintf(buf, sizeof(peer_mac_text),
			 "routers share the MAC address %s of %s, and may send from their own",
			 mac_format(m->mac, mac), addr_format(&m->hop, hop));
	else if (m->hop.family)
		snprintf(buf, sizeof(peer_mac_text), "the kernel has no MAC address of %s",
			 addr_format(&m->hop, hop));
	else
		snprintf(buf, sizeof(peer_mac_text), "the kernel has no route to it");
	return buf;
}
