// SPDX-License-Identifier: GPL-2.0-only
// Looks up routes and neighbours.
#include "ctl/control/peer_mac.h"

#include <net/if_arp.h>
#include <stdio.h>

#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/net/link.h"
#include "ctl/net/neigh.h"
#include "ctl/net/route.h"

#define WAIT_MS 500 // for all neighbours of a command

void peer_mac_on_link(const struct addr *host, uint32_t ifindex, struct peer_mac *ret)
{
	struct neigh n = {.ifindex = ifindex, .addr = *host};

	*ret = (struct peer_mac){.hop = *host};
	if (neigh_resolve(&n, 1, 0, NULL) || n.state != NEIGH_KNOWN)
		return;
	ret->known = true;
	ret->mac = mac_of_bytes(n.mac);
	ret->shared = mac_is_shared(ret->mac);
}

// The neighbour to which packets for the peer go. An address that is not this host's, such as of a
// service, has no routes of its own.
static bool find_hop(const struct addr *peer, const struct addr *local, struct neigh *ret,
		     bool *ret_several)
{
	static const struct addr any;
	struct lookup route;

	if (!local->family || lookup_route_from(peer, local, &route)) {
		local = &any;
		if (lookup_route(peer, &route))
			return false;
	}
	if (route.kind != LOOKUP_UNICAST)
		return false;
	*ret_several = lookup_has_choice(peer, local);
	*ret = (struct neigh){.ifindex = route.ifindex,
			      .addr = route.gateway.family ? route.gateway : *peer};
	return true;
}

void peer_mac_find(const struct addr *peer, const struct addr *local, struct peer_mac *ret)
{
	bool several = false;
	struct neigh hop;
	struct link link;

	*ret = (struct peer_mac){0};
	if (!find_hop(peer, local, &hop, &several))
		return;
	peer_mac_on_link(&hop.addr, hop.ifindex, ret);
	ret->several = several;
	ret->tunnel = !several && !link_get_by_index(hop.ifindex, &link, NULL) &&
		      link.type != ARPHRD_ETHER;
}

void peer_mac_ask(const struct peer_ends *ends, size_t n)
{
	CLEANUP_FREE struct neigh *hops = mem_zalloc(n, sizeof(*hops));
	size_t found = 0;
	bool several;

	for (size_t i = 0; i < n; i++) {
		hops[found] = (struct neigh){.ifindex = ends[i].ifindex, .addr = ends[i].peer};
		found += ends[i].ifindex ||
			 find_hop(&ends[i].peer, &ends[i].local, &hops[found], &several);
	}
	neigh_resolve(hops, found, WAIT_MS, NULL);
}

bool peer_mac_is_certain(const struct peer_mac *m)
{
	return m->known && !m->shared && !m->several;
}

const char *peer_mac_why(const struct peer_mac *m, peer_mac_text buf)
{
	addr_text hop;
	mac_text mac;

	if (m->several)
		snprintf(buf, sizeof(peer_mac_text),
			 "the route to it has several next hops, and its packets may come from "
			 "another one than %s",
			 addr_format(&m->hop, hop));
	else if (m->known)
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
