// SPDX-License-Identifier: GPL-2.0-only
// Combines route, links, neighbours and XDP features into a next hop.
#include "ctl/net/nexthop.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/net/native.h"
#include "ctl/net/neigh.h"

static const char *ip_of(const struct addr *a)
{
	return a->family == 6 ? "ip -6" : "ip";
}

// Routes

static int no_route(const struct addr *dest, int code, struct err *err)
{
	addr_text text;

	addr_format(dest, text);
	if (code == -ENETUNREACH)
		err_refused(err, "no route to '%s'", text);
	else if (code == -EHOSTUNREACH || code == -EACCES || code == -EINVAL)
		err_refused(err, "the route to '%s' is of type %s", text,
			    code == -EHOSTUNREACH ? "unreachable"
			    : code == -EACCES     ? "prohibit"
						  : "blackhole");
	else
		return err_system(err, -code, "cannot query the route to '%s'", text);
	if (err)
		err->code = -code;
	err_hint(err, "%s route add %s via GATEWAY dev IFACE", ip_of(dest), text);
	return code;
}

static int bad_kind(const struct addr *dest, enum lookup_kind kind, struct err *err)
{
	addr_text text;

	addr_format(dest, text);
	switch (kind) {
	case LOOKUP_GROUP:
		err_refused(err, "'%s' is a broadcast, multicast or anycast address here", text);
		break;
	case LOOKUP_ENCAP:
		err_refused(err, "the route to '%s' encapsulates packets, which XDP cannot do",
			    text);
		err_hint(err, "%s route get %s; a route of its own: %s route add %s dev IFACE",
			 ip_of(dest), text, ip_of(dest), text);
		break;
	default:
		err_refused(err, "the route to '%s' is of type unreachable, prohibit or blackhole",
			    text);
		err_hint(err, "%s route add %s via GATEWAY dev IFACE", ip_of(dest), text);
	}
	return -EHOSTUNREACH;
}

// Links

static int compare_index(const void *key, const void *link)
{
	uint32_t index = *(const uint32_t *)key, other = ((const struct link *)link)->index;

	return index < other ? -1 : index > other;
}

static const struct link *find_link(const struct link *links, size_t n, uint32_t index)
{
	return n ? bsearch(&index, links, n, sizeof(*links), compare_index) : NULL;
}

static int bad_vlan(const struct link *vlan, const char *why, struct err *err)
{
	err_refused(err, "frames for the VLAN device '%s' cannot be made: %s", vlan->name, why);
	err_hint(err, "give the backends a device with one 802.1Q tag, or none");
	return -EOPNOTSUPP;
}

// The device that really sends, and the tag it has to see. Only one: the datapath writes no two.
static int go_below(const struct link *device, const struct link *links, size_t n,
		    const struct link **ret_egress, struct err *err)
{
	const struct link *below;

	*ret_egress = device;
	if (!device->vlan)
		return 0;
	if (device->vlan_type != ETH_P_8021Q)
		return bad_vlan(device, "its tag is 802.1ad", err);
	if (device->lower_elsewhere || !(below = find_link(links, n, device->lower)))
		return bad_vlan(device, "the device below is in another network namespace", err);
	if (below->vlan)
		return bad_vlan(device, "the device below is a VLAN device too", err);
	*ret_egress = below;
	return 0;
}

static int check_device(const struct addr *dest, const struct link *l, struct err *err)
{
	addr_text text;

	if (l->type == ARPHRD_ETHER)
		return 0;
	err_refused(err, "the route to '%s' uses '%s', which is not an Ethernet device (%s)",
		    addr_format(dest, text), l->name, l->kind[0] ? l->kind : "type unknown");
	err_hint(err, "%s route add %s via GATEWAY dev IFACE", ip_of(dest), text);
	return -EOPNOTSUPP;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return b && b < a ? b : a;
}

static void fill_links(const struct link *device, const struct link *egress, struct nexthop *hop)
{
	hop->ifindex = egress->index;
	hop->vlan = device->vlan;
	hop->mtu = least(device->mtu, egress->mtu);
	memcpy(hop->mac_own, device->mac, sizeof(hop->mac_own));
	snprintf(hop->name, sizeof(hop->name), "%s", egress->name);
	snprintf(hop->kind, sizeof(hop->kind), "%s", egress->kind);
}

int nexthop_from(const struct addr *dest, const struct lookup *route, const struct link *links,
		 size_t n_links, struct nexthop *ret, struct err *err)
{
	struct nexthop hop = {.gateway = route->gateway, .source = route->source};
	const struct link *device, *egress;
	int code;

	if (route->kind == LOOKUP_LOCAL) {
		*ret = (struct nexthop){.local = true, .source = route->source};
		return 0;
	}
	if (route->kind != LOOKUP_UNICAST)
		return bad_kind(dest, route->kind, err);
	if (!(device = find_link(links, n_links, route->ifindex)))
		return err_stated(err, ENODEV, "the device %u of a route no longer exists",
				  route->ifindex);
	if ((code = check_device(dest, device, err)) ||
	    (code = go_below(device, links, n_links, &egress, err)) ||
	    (code = check_device(dest, egress, err)))
		return code;
	fill_links(device, egress, &hop);
	hop.mtu_of_route = route->mtu && route->mtu < hop.mtu;
	hop.mtu = least(hop.mtu, route->mtu);
	*ret = hop;
	return 0;
}

// Neighbours

static int no_neighbour(const struct addr *dest, const struct neigh *n, const struct link *device,
			struct err *err)
{
	const char *protocol = n->addr.family == 4 ? "ARP" : "neighbour discovery";
	addr_text text, via;

	addr_format(&n->addr, via);
	if (addr_compare(dest, &n->addr) != 0)
		err_refused(err, "the gateway '%s' of '%s' does not answer %s on '%s'", via,
			    addr_format(dest, text), protocol, device->name);
	else
		err_refused(err, "'%s' does not answer %s on '%s'", via, protocol, device->name);
	if (!device->running)
		err_hint(err, "'%s' has no carrier: ip link show dev %s", device->name,
			 device->name);
	else
		err_hint(err,
			 "is it up? To set its MAC address: %s neigh replace %s lladdr MAC dev %s",
			 ip_of(&n->addr), via, device->name);
	return -EHOSTUNREACH;
}

// Results of one call of nexthop_find.
struct nexthop_finding {
	const struct addr *dests;
	struct nexthop_answer *answers;
	size_t n;
	struct link *links;
	size_t n_links;
	enum nexthop_xmit *xmit; // features of each link; requested for the first egress
	bool *xmit_asked;
	struct neigh *neighs; // one for each answer that needs one
	size_t *whose;        // index of that answer
	size_t n_neighs;
};

static void finding_cleanup(struct nexthop_finding *f)
{
	free(f->links);
	free(f->xmit);
	free(f->xmit_asked);
	free(f->neighs);
	free(f->whose);
}

// If the kernel does not report it, the table of drivers has it.
static enum nexthop_xmit xmit_by_driver(uint32_t ifindex)
{
	struct link link;

	if (link_get_by_index(ifindex, &link, NULL) || !native_sends_with_program(link.driver))
		return NEXTHOP_XMIT_UNKNOWN;
	return native_carries(&link) ? NEXTHOP_XMIT_YES : NEXTHOP_XMIT_NO;
}

enum nexthop_xmit nexthop_xmit(uint32_t ifindex)
{
	uint64_t bits;

	if (xdp_features(ifindex, &bits))
		return xmit_by_driver(ifindex);
	return bits & XDP_FEATURE_NDO_XMIT ? NEXTHOP_XMIT_YES : NEXTHOP_XMIT_NO;
}

static enum nexthop_xmit xmit_of(struct nexthop_finding *f, uint32_t ifindex)
{
	size_t at = (size_t)(find_link(f->links, f->n_links, ifindex) - f->links);

	if (!f->xmit_asked[at])
		f->xmit[at] = nexthop_xmit(ifindex);
	f->xmit_asked[at] = true;
	return f->xmit[at];
}

// The kernel would take any interface's fe80::/64.
static int check_scope(const struct addr *dest, struct err *err)
{
	addr_text text;

	if (dest->family != 6 || !addr_is_link_local(dest))
		return 0;
	err_refused(err, "'%s' is a link-local address: every interface has a route to it",
		    addr_format(dest, text));
	err_hint(err, "use another address of that host");
	return -EINVAL;
}

static void find_route(struct nexthop_finding *f, size_t i)
{
	struct nexthop_answer *a = &f->answers[i];
	struct lookup route;

	if ((a->code = check_scope(&f->dests[i], &a->err)))
		return;
	a->code = lookup_route(&f->dests[i], &route);
	if (a->code) {
		a->code = no_route(&f->dests[i], a->code, &a->err);
		return;
	}
	a->code = nexthop_from(&f->dests[i], &route, f->links, f->n_links, &a->hop, &a->err);
	if (a->code || a->hop.local)
		return;
	a->hop.xmit = xmit_of(f, a->hop.ifindex);
	f->whose[f->n_neighs] = i;
	f->neighs[f->n_neighs++] = (struct neigh){
		.ifindex = route.ifindex,
		.addr = route.gateway.family ? route.gateway : f->dests[i],
	};
}

static void take_neighbour(struct nexthop_finding *f, size_t at)
{
	const struct neigh *n = &f->neighs[at];
	struct nexthop_answer *a = &f->answers[f->whose[at]];

	a->silent = n->state != NEIGH_KNOWN;
	if (!a->silent)
		memcpy(a->hop.mac, n->mac, sizeof(a->hop.mac));
	else
		a->code = no_neighbour(&f->dests[f->whose[at]], n,
				       find_link(f->links, f->n_links, n->ifindex), &a->err);
}

static int prepare(struct nexthop_finding *f, struct err *err)
{
	int code = link_list(&f->links, &f->n_links, err);

	if (code)
		return code;
	f->xmit = mem_zalloc(f->n_links, sizeof(*f->xmit));
	f->xmit_asked = mem_zalloc(f->n_links, sizeof(*f->xmit_asked));
	f->neighs = mem_zalloc(f->n, sizeof(*f->neighs));
	f->whose = mem_zalloc(f->n, sizeof(*f->whose));
	return 0;
}

int nexthop_find(const struct addr *dests, size_t n, uint32_t wait_ms, struct nexthop_answer *ret,
		 struct err *err)
{
	CLEANUP(finding_cleanup)
	struct nexthop_finding f = {.dests = dests, .answers = ret, .n = n};
	int code = prepare(&f, err);

	if (code)
		return code;
	memset(ret, 0, n * sizeof(*ret));
	for (size_t i = 0; i < n; i++)
		find_route(&f, i);
	code = neigh_resolve(f.neighs, f.n_neighs, wait_ms, err);
	if (code)
		return code;
	for (size_t at = 0; at < f.n_neighs; at++)
		take_neighbour(&f, at);
	return 0;
}
