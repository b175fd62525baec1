// SPDX-License-Identifier: GPL-2.0-only
// Derives the interfaces of a connection from its two ends.
#include "ctl/control/login.h"

#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/net/route.h"

#define TCP_ACK 0x10

enum login login_of(const struct session *s)
{
	if (!s)
		return LOGIN_NONE;
	if (s->peer.family)
		return s->remote ? LOGIN_KNOWN : LOGIN_NONE;
	return s->remote || s->error ? LOGIN_UNKNOWN : LOGIN_NONE;
}

struct resolved_packet login_answer(const struct addr *from, uint16_t sport, const struct addr *to,
				    uint16_t dport, uint8_t proto)
{
	return (struct resolved_packet){
		.ethertype = from->family == 4 ? 0x0800 : 0x86dd,
		.ip = true,
		.proto = proto,
		.from = *from,
		.to = *to,
		.sport = sport,
		.dport = dport,
		.flags = proto == IPPROTO_TCP ? TCP_ACK : 0,
		.ttl = 64,
		.established = true,
	};
}

struct resolved_packet login_packet(const struct session *s)
{
	return login_answer(&s->peer, s->peer_port, &s->local, s->local_port, IPPROTO_TCP);
}

void login_ways_free(struct login_ways *w)
{
	free(w->links);
	free(w->used);
	*w = (struct login_ways){0};
}

static bool is_one_of(const char *kind, const char *const *kinds, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (!strcmp(kind, kinds[k]))
			return true;
	return false;
}

// Packets come in on such a device as they are: they have not been in a tunnel.
static bool is_open(const struct link *link)
{
	static const char *const kinds[] = {"",     "veth",    "vlan",    "bridge", "bond",
					    "team", "macvlan", "macvtap", "ipvlan"};

	return link->type == ARPHRD_ETHER && is_one_of(link->kind, kinds, ARRAY_SIZE(kinds));
}

// An address there says nothing about the way of its packets.
static bool is_shelf(const struct link *link)
{
	return link->type == ARPHRD_LOOPBACK || !strcmp(link->kind, "dummy");
}

static struct link *find(const struct login_ways *w, uint32_t ifindex, size_t *ret)
{
	for (size_t n = 0; n < w->n; n++)
		if (w->links[n].index == ifindex) {
			*ret = n;
			return &w->links[n];
		}
	return NULL;
}

// The device, and what is below it.
static void use(struct login_ways *w, uint32_t ifindex)
{
	size_t at;
	const struct link *link = find(w, ifindex, &at);

	if (!link) {
		w->any = true;
		return;
	}
	if (w->used[at] || is_shelf(link))
		return;
	w->used[at] = true;
	w->any |= !is_open(link);
	if (link->lower_elsewhere && strcmp(link->kind, "veth") != 0)
		w->any = true;
	else if (link->lower && strcmp(link->kind, "veth") != 0)
		use(w, link->lower);
	for (size_t n = 0; n < w->n; n++)
		if (w->links[n].master == ifindex)
			use(w, w->links[n].index);
}

static int use_address(struct login_ways *w, const struct addr *local, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++)
		if (!addr_compare(&own[a].addr, local))
			use(w, own[a].ifindex);
	return 0;
}

int login_ways(const struct session *s, struct login_ways *ret, struct err *err)
{
	CLEANUP_LOGIN_WAYS struct login_ways w = {0};
	struct lookup route;
	bool some = false;
	int failed, code = link_list(&w.links, &w.n, err);

	if (code)
		return code;
	w.used = mem_zalloc(w.n, sizeof(*w.used));
	failed = lookup_route(&s->peer, &route);
	// A login from this host to itself crosses no interface.
	if (failed || route.kind != LOOKUP_LOCAL) {
		if (!failed && route.kind == LOOKUP_UNICAST)
			use(&w, route.ifindex);
		code = use_address(&w, &s->local, err);
		for (size_t n = 0; n < w.n; n++)
			some |= w.used[n];
		w.any |= !some;
	}
	if (code)
		return code;
	*ret = w;
	w = (struct login_ways){0};
	return 0;
}

bool login_uses(const struct login_ways *w, uint32_t ifindex)
{
	size_t at;

	return w->any || (find(w, ifindex, &at) && w->used[at]);
}
