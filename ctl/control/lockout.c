// SPDX-License-Identifier: GPL-2.0-only
// Runs test packets for the connections that must survive.
#include "ctl/control/lockout.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/control/login.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/test_program.h"
#include "ctl/net/dns.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

#define IFACE_NOT_NAMED UINT32_MAX // attached, and the policy names none

// Who asks, and what for.
struct lockout {
	struct candidate *c;
	const struct instance *instance;
	const struct apply_options *options;
	struct own_addr *own;
	size_t n_own;
	struct generation_about *about;
};

static const struct own_addr *own_find(const struct lockout *l, const struct addr *a)
{
	for (size_t n = 0; n < l->n_own; n++)
		if (!addr_compare(&l->own[n].addr, a))
			return &l->own[n];
	return NULL;
}

// Packets come in on such a device itself, not on a lower one, a port, or any at all (loopback,
// dummy).
static bool is_plain(const struct link *link)
{
	return link->type == ARPHRD_ETHER && (!link->kind[0] || !strcmp(link->kind, "veth"));
}

// Does the policy see packets to this own address? *ret: on which of its interfaces; the first one
// when that is not known.
static bool sees(const struct lockout *l, const struct addr *local, uint32_t *ret)
{
	const struct own_addr *own = own_find(l, local);
	struct link link;
	uint32_t number;
	uint8_t class;

	*ret = 0;
	if (!own || link_get_by_index(own->ifindex, &link, NULL))
		return true;
	if ((class = generation_class(l->about, link.name))) {
		*ret = class - 1u;
		return true;
	}
	if (!is_plain(&link))
		return true;
	*ret = IFACE_NOT_NAMED;
	return !l->about->n_ifaces &&
	       (instance_find_iface(l->instance, link.name, &number, NULL) || number);
}

// Does the packet pass? The answer in words goes into buf.
static int passes(struct candidate *c, const struct resolved_packet *p, bool *ret, char *buf,
		  size_t size, struct err *err)
{
	struct test_result result;
	int code = candidate_ask(c, p, false, &result, err);

	if (code)
		return code;
	*ret = result.verdict == XDP_PASS;
	candidate_describe(c, &result, buf, size);
	return 0;
}

static int refuse_unknown(const struct session *s, struct err *err)
{
	if (s->remote)
		err_refused(
			err,
			"cannot tell where this remote login comes from, so cannot check that the policy passes it");
	else
		err_refused(
			err,
			"cannot find your login (%s), so cannot check that the policy passes it",
			err_why(s->error));
	err_hint(err, "weir apply --confirm tries the policy and reverts by itself");
	return -EPERM;
}

// Will the policy hold on this device? *ret: as which of its interfaces.
static bool holds_on(const struct lockout *l, const struct link *link, uint32_t *ret)
{
	uint8_t class = generation_class(l->about, link->name);
	uint32_t number;

	*ret = class - 1u; // IFACE_NOT_NAMED where it names none
	if (class || l->about->n_ifaces)
		return class;
	return instance_find_iface(l->instance, link->name, &number, NULL) || number;
}

static int check_way(const struct lockout *l, const struct link *link, uint32_t iface,
		     struct err *err)
{
	const struct session *s = l->options->session;
	struct resolved_packet p = login_packet(s);
	addr_text peer;
	char verdict[512];
	bool pass;
	int code;

	p.iface = iface;
	if ((code = passes(l->c, &p, &pass, verdict, sizeof(verdict), err)) || pass)
		return code;
	err_refused(err, "the policy would cut off your own login from %s, on '%s': %s",
		    addr_format(&s->peer, peer), link->name, verdict);
	err_hint(err, "add 'always pass from %s', or use --force", peer);
	return -EPERM;
}

// Once for each interface of the policy.
static int check_ways(const struct lockout *l, struct err *err)
{
	CLEANUP_LOGIN_WAYS struct login_ways ways = {0};
	uint64_t asked = 0;
	int code = login_ways(l->options->session, &ways, err);

	if (code)
		return code;
	for (size_t n = 0; n < ways.n; n++) {
		uint32_t iface;
		uint64_t bit;

		if (!login_uses(&ways, ways.links[n].index) || !holds_on(l, &ways.links[n], &iface))
			continue;
		bit = iface_bit(iface + 1);
		if (!(asked & bit) && (code = check_way(l, &ways.links[n], iface, err)))
			return code;
		asked |= bit;
	}
	return 0;
}

static int check_session(const struct lockout *l, struct err *err)
{
	const struct apply_options *o = l->options;
	enum login login = o->force ? LOGIN_NONE : login_of(o->session);

	if (login == LOGIN_UNKNOWN && !o->trial_ms)
		return refuse_unknown(o->session, err);
	return login == LOGIN_KNOWN ? check_ways(l, err) : 0;
}

static void warn(struct apply_result *ret, const char *what, const struct addr *a,
		 const char *verdict)
{
	addr_text text;

	vec_push(&ret->warnings, mem_printf("the policy would drop %s %s: %s", what,
					    addr_format(a, text), verdict));
}

// Asks with the first own address of the resolver's family on an interface that the policy sees.
static int check_resolver(const struct lockout *l, const struct addr *server,
			  struct apply_result *ret, struct err *err)
{
	for (size_t a = 0; a < l->n_own; a++) {
		const struct addr *own = &l->own[a].addr;
		struct resolved_packet p;
		char verdict[512];
		bool pass = true;
		int code;

		if (own->family != server->family || addr_is_loopback(own) ||
		    addr_is_loopback(server))
			continue;
		p = login_answer(server, 53, own, 40000, IPPROTO_UDP);
		if (!sees(l, own, &p.iface))
			continue;
		if ((code = passes(l->c, &p, &pass, verdict, sizeof(verdict), err)))
			return code;
		if (!pass)
			warn(ret, "answers of the resolver", server, verdict);
		return 0;
	}
	return 0;
}

static int check_resolvers(const struct lockout *l, struct apply_result *ret, struct err *err)
{
	CLEANUP_FREE struct addr *servers = NULL;
	size_t n = 0;

	if (dns_servers(&l->options->dns, &servers, &n, NULL))
		return 0;
	for (size_t s = 0; s < n; s++) {
		int code = check_resolver(l, &servers[s], ret, err);

		if (code)
			return code;
	}
	return 0;
}

// A neighbour advertisement of an IPv6 gateway; ARP has no address that a rule could name but by
// frame.
static int check_gateways(struct candidate *c, struct apply_result *ret, struct err *err)
{
	CLEANUP_FREE struct gateway *gateways = NULL;
	size_t n = 0;
	int code;

	if (route_gateways(&gateways, &n, NULL))
		return 0;
	for (size_t g = 0; g < n; g++) {
		struct resolved_packet p;
		char verdict[512];
		bool pass = true;

		if (gateways[g].addr.family != 6)
			continue;
		p = login_answer(&gateways[g].addr, 0, &gateways[g].addr, 0, IPPROTO_ICMPV6);
		p.type = 136;
		p.ttl = 255;
		if ((code = passes(c, &p, &pass, verdict, sizeof(verdict), err)))
			return code;
		if (!pass)
			warn(ret, "neighbour discovery of the gateway", &gateways[g].addr, verdict);
	}
	return 0;
}

int lockout_check(struct candidate *c, const struct instance *i, const struct apply_options *o,
		  struct apply_result *ret, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FREE struct own_addr *own = NULL;
	struct lockout l = {.c = c, .instance = i, .options = o, .about = about};
	int code = route_own_addrs(&own, &l.n_own, err);

	l.own = own;
	candidate_about(c, about);
	if (code)
		return code;
	if ((code = check_session(&l, err)))
		return code;
	if ((code = check_resolvers(&l, ret, err)))
		return code;
	return check_gateways(c, ret, err);
}
