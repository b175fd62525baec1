// SPDX-License-Identifier: GPL-2.0-only
// Runs packets of the connections that must survive through the test program of a candidate.
#include "ctl/control/lockout.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/control/candidate.h"
#include "ctl/control/decision.h"
#include "ctl/control/frame.h"
#include "ctl/control/login_packets.h"
#include "ctl/control/mac_classes.h"
#include "ctl/control/peer_mac.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/reach.h"
#include "ctl/datapath/test_program.h"
#include "ctl/net/dns.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

#define IFACE_NOT_NAMED UINT32_MAX // attached, and the policy names none

// The command and its purpose.
struct lockout {
	struct candidate *c;
	const struct instance *instance;
	const struct apply_options *options;
	struct apply_result *result;
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

// The answer about a packet of a login.
struct login_answer {
	struct candidate *by; // whose answer it is
	struct test_result result;
	char ended[32]; // the last quick rule that passes the packet before it ends; "": none does
};

// A pass by a quick rule that ends is asked about once more, without the rules that have ended by
// then.
static int ask_lasting(struct candidate *c, const struct resolved_packet *p,
		       struct login_answer *ret, struct err *err)
{
	const struct quick_rule *rule;
	int code;

	*ret = (struct login_answer){.by = c};
	while (!(code = candidate_ask(ret->by, p, false, &ret->result, err))) {
		rule = ret->result.verdict == XDP_PASS ? candidate_quick(ret->by, &ret->result)
						       : NULL;
		if (!rule || !rule->until_s)
			return 0;
		snprintf(ret->ended, sizeof(ret->ended), "%s", rule->label);
		if ((code = candidate_after(c, rule->until_s, &ret->by, err)))
			return code;
	}
	return code;
}

static int refuse_login(const struct lockout *l, const struct session *s, const struct link *link,
			const struct login_answer *a, struct err *err)
{
	bool own = s == l->options->session, later = a->ended[0];
	const struct quick_rule *rule = candidate_quick(a->by, &a->result);
	char verdict[512];
	addr_text peer;

	if (rule && rule->fresh)
		l->result->culprit = rule->id;
	decision_describe(a->by, &a->result, verdict, sizeof(verdict));
	err_refused(err, "the policy would cut off %s login from %s, on '%s'%s%s%s: %s",
		    own ? "your own" : "the", addr_format(&s->peer, peer), link->name,
		    later ? ", when " : "", a->ended, later ? " ends" : "", verdict);
	err_hint(err, "add 'always pass from %s', or use --force", peer);
	return -EPERM;
}

static bool is_by_new(const struct candidate *c, const struct test_result *r)
{
	const struct quick_rule *rule = candidate_quick(c, r);

	return rule && rule->fresh;
}

// Of another login only what a new quick rule does counts: it may be cut off already. So it is with
// the own login after the end of a quick rule, unless the policy is new.
static bool counts(const struct lockout *l, const struct session *s, const struct login_answer *a)
{
	const struct apply_options *o = l->options;

	if (s == o->session && !(a->ended[0] && (o->quick || o->answers)))
		return true;
	return is_by_new(a->by, &a->result);
}

// Does the command bring what decides?
static bool is_brought(const struct lockout *l, const struct login_answer *a)
{
	const struct quick_rule *rule = candidate_quick(a->by, &a->result);

	return rule ? rule->fresh : !l->options->quick;
}

// A login, and with which MAC addresses its packets may arrive.
struct asked_login {
	const struct session *s;
	const struct peer_mac *from;
	const struct mac_classes *macs;
};

// *last: the answer with the last of the MAC addresses; with several, a drop only counts if the
// command brings it.
static int ask_macs(const struct lockout *l, const struct asked_login *login,
		    struct resolved_packet *p, struct mac_answers *ret, struct login_answer *last,
		    struct err *err)
{
	bool several = login->macs->of.n > 1;

	*ret = packet_no_answers(login->macs, login->from);
	vec_each (&login->macs->of, mac) {
		int code;

		packet_set_mac(p, *mac);
		if ((code = ask_lasting(l->c, p, last, err)))
			return code;
		if (last->result.verdict != XDP_PASS && counts(l, login->s, last) &&
		    (!several || is_brought(l, last)))
			ret->drop = true;
		else
			ret->pass = true;
	}
	return 0;
}

// A MAC address that is not certain and decides: refused, unless the policy is on trial. Other
// answers for names bring no rule with mac.
static int check_packet(const struct lockout *l, const struct asked_login *login,
			const struct link *link, struct resolved_packet *p, struct err *err)
{
	struct mac_answers answers;
	struct login_answer last;
	int code = ask_macs(l, login, p, &answers, &last, err);

	if (code)
		return code;
	if (answers.drop && !answers.pass)
		return refuse_login(l, login->s, link, &last, err);
	if (!packet_mac_decides(&answers, login->from) || l->options->trial_ms ||
	    l->options->answers)
		return 0;
	return login_refuse_mac(login->s, login->from, NULL, l->options->quick, err);
}

// answered: the route to the peer leads by the link.
static int check_way(const struct lockout *l, const struct asked_login *login,
		     const struct link *link, bool answered, uint32_t iface, struct err *err)
{
	for (size_t n = 0; n < LOGIN_PACKETS; n++) {
		struct resolved_packet p = login_packet(login->s, n);
		int code;

		p.iface = iface;
		p.unroutable = !answered;
		if ((code = check_packet(l, login, link, &p, err)))
			return code;
	}
	return 0;
}

// Once for each interface of the policy, and for each way that the answers do not take.
static int check_ways(const struct lockout *l, const struct session *s, struct err *err)
{
	CLEANUP_SESSION_WAYS struct session_ways ways = {0};
	CLEANUP_MAC_CLASSES struct mac_classes macs = {0};
	struct peer_mac from;
	struct asked_login login = {s, &from, &macs};
	uint64_t asked = 0;
	int code = session_ways(s, &ways, err);

	if (code)
		return code;
	peer_mac_find(&s->peer, &s->local, &from);
	packet_macs(&from, l->c->resolved, &macs);
	for (size_t n = 0; n < ways.n; n++) {
		bool answered = session_answers(&ways, ways.links[n].index);
		uint32_t iface;
		uint64_t bit;

		if (!session_uses(&ways, ways.links[n].index) ||
		    !holds_on(l, &ways.links[n], &iface))
			continue;
		bit = iface_bit(iface + 1);
		if ((!(asked & bit) || !answered) &&
		    (code = check_way(l, &login, &ways.links[n], answered, iface, err)))
			return code;
		asked |= bit;
	}
	return 0;
}

static int check_session(const struct lockout *l, struct err *err)
{
	const struct apply_options *o = l->options;
	enum session_place login = o->force ? SESSION_NONE : session_placed(o->session);

	if (login == SESSION_UNKNOWN && !o->trial_ms)
		return login_refuse_unknown(o->session, NULL, err);
	return login == SESSION_KNOWN ? check_ways(l, o->session, err) : 0;
}

static int check_logins(const struct lockout *l, struct err *err)
{
	CLEANUP_FREE struct session *logins = NULL;
	size_t n = 0;
	int code = session_logins(&logins, &n, err);

	if (code)
		return code;
	for (size_t s = 0; s < n; s++)
		if ((code = check_ways(l, &logins[s], err)))
			return code;
	return 0;
}

// Warns if the policy drops the packet of a host, or if its MAC address decides and is not certain.
static int warn_about(const struct lockout *l, struct resolved_packet *p,
		      const struct peer_mac *from, const char *what, struct err *err)
{
	CLEANUP_MAC_CLASSES struct mac_classes macs = {0};
	struct apply_result *ret = l->result;
	struct test_result result;
	struct mac_answers answers;
	peer_mac_text why;
	char verdict[512];
	addr_text host;
	int code;

	packet_macs(from, l->c->resolved, &macs);
	answers = packet_no_answers(&macs, from);
	vec_each (&macs.of, mac) {
		packet_set_mac(p, *mac);
		if ((code = candidate_ask(l->c, p, false, &result, err)))
			return code;
		*(result.verdict == XDP_PASS ? &answers.pass : &answers.drop) = true;
	}
	addr_format(&p->from, host);
	if (packet_mac_decides(&answers, from)) {
		vec_push(&ret->warnings,
			 mem_printf("cannot check that rules with mac pass %s %s: %s", what, host,
				    peer_mac_why(from, why)));
		return 0;
	}
	if (answers.pass)
		return 0;
	decision_describe(l->c, &result, verdict, sizeof(verdict));
	vec_push(&ret->warnings,
		 mem_printf("the policy would drop %s %s: %s", what, host, verdict));
	return 0;
}

// Asks with the first own address of the resolver's family on an interface that the policy sees.
static int check_resolver(const struct lockout *l, const struct addr *server, struct err *err)
{
	for (size_t a = 0; a < l->n_own; a++) {
		const struct addr *own = &l->own[a].addr;
		struct resolved_packet p;
		struct peer_mac from;

		if (own->family != server->family || addr_is_loopback(own) ||
		    addr_is_loopback(server))
			continue;
		p = packet_of_answer(server, 53, own, 40000, IPPROTO_UDP);
		if (!sees(l, own, &p.iface))
			continue;
		peer_mac_find(server, own, &from);
		return warn_about(l, &p, &from, "answers of the resolver", err);
	}
	return 0;
}

static int check_resolvers(const struct lockout *l, struct err *err)
{
	CLEANUP_FREE struct addr *servers = NULL;
	size_t n = 0;

	if (dns_servers(&l->options->dns, &servers, &n, NULL))
		return 0;
	for (size_t s = 0; s < n; s++) {
		int code = check_resolver(l, &servers[s], err);

		if (code)
			return code;
	}
	return 0;
}

// A neighbour advertisement of an IPv6 gateway; ARP has no address that a rule could name but by
// frame.
static int check_gateways(const struct lockout *l, struct err *err)
{
	CLEANUP_FREE struct gateway *gateways = NULL;
	size_t n = 0;
	int code;

	if (route_gateways(&gateways, &n, NULL))
		return 0;
	for (size_t g = 0; g < n; g++) {
		struct resolved_packet p;
		struct peer_mac from;

		if (gateways[g].addr.family != 6)
			continue;
		p = packet_of_answer(&gateways[g].addr, 0, &gateways[g].addr, 0, IPPROTO_ICMPV6);
		p.type = 136;
		p.ttl = 255;
		peer_mac_on_link(&gateways[g].addr, gateways[g].ifindex, &from);
		code = warn_about(l, &p, &from, "neighbour discovery of the gateway", err);
		if (code)
			return code;
	}
	return 0;
}

int lockout_check(struct candidate *c, const struct instance *i, const struct apply_options *o,
		  struct apply_result *ret, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FREE struct own_addr *own = NULL;
	struct lockout l = {.c = c, .instance = i, .options = o, .result = ret, .about = about};
	int code = route_own_addrs(&own, &l.n_own, err);

	l.own = own;
	candidate_about(c, about);
	if (code)
		return code;
	if ((code = check_session(&l, err)))
		return code;
	if (o->quick && !o->force && (code = check_logins(&l, err)))
		return code;
	if ((code = check_resolvers(&l, err)))
		return code;
	return check_gateways(&l, err);
}

struct end_list {
	VEC(struct peer_ends) of;
};

static void end_list_free(struct end_list *l)
{
	vec_free(&l->of);
}

static void add_logins(const struct apply_options *o, struct end_list *ret)
{
	CLEANUP_FREE struct session *logins = NULL;
	size_t n = 0;

	if (session_placed(o->session) == SESSION_KNOWN)
		vec_push(&ret->of, ((struct peer_ends){o->session->peer, o->session->local, 0}));
	if (!o->quick || o->force)
		return;
	session_logins(&logins, &n, NULL);
	for (size_t i = 0; i < n; i++)
		vec_push(&ret->of, ((struct peer_ends){logins[i].peer, logins[i].local, 0}));
}

static void add_others(const struct apply_options *o, struct end_list *ret)
{
	CLEANUP_FREE struct addr *servers = NULL;
	CLEANUP_FREE struct gateway *gateways = NULL;
	size_t n = 0;

	if (!dns_servers(&o->dns, &servers, &n, NULL))
		for (size_t i = 0; i < n; i++)
			vec_push(&ret->of, ((struct peer_ends){.peer = servers[i]}));
	n = 0;
	if (!route_gateways(&gateways, &n, NULL))
		for (size_t i = 0; i < n; i++)
			if (gateways[i].addr.family == 6)
				vec_push(&ret->of,
					 ((struct peer_ends){.peer = gateways[i].addr,
							     .ifindex = gateways[i].ifindex}));
}

void lockout_prepare(const struct candidate *c, const struct apply_options *o)
{
	CLEANUP(end_list_free) struct end_list ends = {0};

	if (!(c->image->config.flags & RULE_MAC))
		return;
	add_logins(o, &ends);
	add_others(o, &ends);
	peer_mac_ask(ends.of.at, ends.of.n);
}
