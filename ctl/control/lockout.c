// SPDX-License-Identifier: GPL-2.0-only
// Runs packets of the connections that must survive through test programs: the program of a
// candidate, and the programs of the policies that packets on a further interface would meet.
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

#define TCP_ACK 0x10

// A packet of an established connection; ports are of TCP and UDP.
static struct resolved_packet answer(const struct addr *from, uint16_t sport, const struct addr *to,
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

#define LOGIN_PACKETS 9

#define MAC_WAIT_MS 500 // for a neighbour, where a rule asks for its MAC address

// One of the packets of a login that is known: of several lengths, from near and far.
static struct resolved_packet one_packet(const struct session *s, size_t number)
{
	static const uint8_t ttls[] = {64, 50, 120};
	static const uint16_t payloads[] = {0, 100, 1400};
	struct resolved_packet p =
		answer(&s->peer, s->peer_port, &s->local, s->local_port, IPPROTO_TCP);

	p.ttl = ttls[number % 3];
	p.length = (p.from.family == 4 ? 40u : 60u) + payloads[number / 3];
	return p;
}

static void set_mac(struct resolved_packet *p, const struct peer_mac *from)
{
	p->mac_given = from->known;
	p->mac = from->mac;
}

static void login_packets(const struct session *s, const struct peer_mac *from,
			  struct resolved_packet ret[LOGIN_PACKETS])
{
	for (size_t n = 0; n < LOGIN_PACKETS; n++) {
		ret[n] = one_packet(s, n);
		set_mac(&ret[n], from);
	}
}

// device: as below.
static int refuse_mac(const struct session *s, const struct peer_mac *from, const char *device,
		      bool quick, struct err *err)
{
	peer_mac_text why;
	addr_text peer;

	err_refused(err, "cannot check that rules with mac pass the login from %s%s%s: %s",
		    addr_format(&s->peer, peer), device ? " on " : "", device ? device : "",
		    peer_mac_why(from, why));
	if (device)
		err_hint(err, "weir attach %s --confirm tries it and reverts by itself", device);
	else if (quick)
		err_hint(err, "--force adds it without the check");
	else
		err_hint(err,
			 "weir apply --confirm tries the policy and reverts by itself; or begin "
			 "with 'always pass from %s'",
			 peer);
	return -EPERM;
}

// device: of an attach; NULL: a candidate is asked.
static int refuse_unknown(const struct session *s, const char *device, struct err *err)
{
	CLEANUP_FREE char *claim =
		device ? mem_printf("the active policy passes it on '%s'", device)
		       : mem_strdup("the policy passes it");

	if (s->remote)
		err_refused(
			err,
			"cannot tell where this remote login comes from, so cannot check that %s",
			claim);
	else
		err_refused(err, "cannot find your login (%s), so cannot check that %s",
			    err_why(s->error), claim);
	if (device)
		err_hint(err, "weir attach %s --confirm tries it and reverts by itself", device);
	else
		err_hint(err, "weir apply --confirm tries the policy and reverts by itself");
	return -EPERM;
}

// ---- a candidate --------------------------------------------------------------------------------

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

// Could the rule match such a packet, if its MAC address were another? Neighbour discovery has
// rules of its own.
static bool may_ask_mac(const struct resolved_rule *rule, const struct resolved_packet *p)
{
	if (p->proto == IPPROTO_ICMPV6)
		return rule->mac.given && (rule->icmp.given || rule->ethertype.given);
	return rule->mac.given && !rule->icmp.given;
}

// Could another MAC address of the source lead to another answer? The first rule that matches
// decides. `brought`: by a rule that the command brings.
static bool depends_on_mac(const struct candidate *c, const struct resolved_packet *p,
			   const struct test_result *r, bool quick, bool brought)
{
	size_t n = r->rule < 0 ? c->resolved->n_rules : (size_t)r->rule + 1;

	for (size_t i = 0; i < n; i++)
		if (may_ask_mac(&c->resolved->rules[i], p) &&
		    (!brought || candidate_brings(c, i, quick)))
			return true;
	return false;
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

// Waits for a neighbour only where a rule asks for its address.
static void find_mac(const struct lockout *l, const struct addr *peer, struct peer_mac *ret)
{
	peer_mac_find(peer, l->c->image->config.flags & RULE_MAC ? MAC_WAIT_MS : 0, ret);
}

// *ret: does the answer count, although the packet may have another MAC address? A rule with mac
// that the command brings is refused if it may decide, unless the policy is on trial. Other answers
// for names bring none.
static int check_mac(const struct lockout *l, const struct session *s, const struct peer_mac *from,
		     const struct resolved_packet *p, const struct login_answer *a, bool *ret,
		     struct err *err)
{
	bool quick = l->options->quick;

	*ret = peer_mac_is_certain(from) || !depends_on_mac(a->by, p, &a->result, quick, false);
	if (*ret || l->options->trial_ms || l->options->answers)
		return 0;
	if (depends_on_mac(a->by, p, &a->result, quick, true))
		return refuse_mac(s, from, NULL, quick, err);
	*ret = is_by_new(a->by, &a->result);
	return 0;
}

static int check_way(const struct lockout *l, const struct session *s, const struct link *link,
		     uint32_t iface, struct err *err)
{
	struct resolved_packet packets[LOGIN_PACKETS];
	struct peer_mac from;

	find_mac(l, &s->peer, &from);
	login_packets(s, &from, packets);
	for (size_t n = 0; n < LOGIN_PACKETS; n++) {
		struct login_answer a;
		bool known;
		int code;

		packets[n].iface = iface;
		if ((code = ask_lasting(l->c, &packets[n], &a, err)))
			return code;
		if ((code = check_mac(l, s, &from, &packets[n], &a, &known, err)))
			return code;
		if (known && a.result.verdict != XDP_PASS && counts(l, s, &a))
			return refuse_login(l, s, link, &a, err);
	}
	return 0;
}

// Once for each interface of the policy.
static int check_ways(const struct lockout *l, const struct session *s, struct err *err)
{
	CLEANUP_SESSION_WAYS struct session_ways ways = {0};
	uint64_t asked = 0;
	int code = session_ways(s, &ways, err);

	if (code)
		return code;
	for (size_t n = 0; n < ways.n; n++) {
		uint32_t iface;
		uint64_t bit;

		if (!session_uses(&ways, ways.links[n].index) ||
		    !holds_on(l, &ways.links[n], &iface))
			continue;
		bit = iface_bit(iface + 1);
		if (!(asked & bit) && (code = check_way(l, s, &ways.links[n], iface, err)))
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
		return refuse_unknown(o->session, NULL, err);
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

// Warns if the policy drops the packet of a host, or if its MAC address may decide and is not
// certain.
static int warn_about(const struct lockout *l, struct resolved_packet *p,
		      const struct peer_mac *from, const char *what, struct err *err)
{
	struct apply_result *ret = l->result;
	struct test_result result;
	peer_mac_text why;
	char verdict[512];
	addr_text host;
	int code;

	set_mac(p, from);
	if ((code = candidate_ask(l->c, p, false, &result, err)))
		return code;
	addr_format(&p->from, host);
	if (!peer_mac_is_certain(from) && depends_on_mac(l->c, p, &result, false, false)) {
		vec_push(&ret->warnings,
			 mem_printf("cannot check that rules with mac pass %s %s: %s", what, host,
				    peer_mac_why(from, why)));
		return 0;
	}
	if (result.verdict == XDP_PASS)
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
		p = answer(server, 53, own, 40000, IPPROTO_UDP);
		if (!sees(l, own, &p.iface))
			continue;
		find_mac(l, server, &from);
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
		p = answer(&gateways[g].addr, 0, &gateways[g].addr, 0, IPPROTO_ICMPV6);
		p.type = 136;
		p.ttl = 255;
		peer_mac_on_link(&gateways[g].addr, gateways[g].ifindex,
				 l->c->image->config.flags & RULE_MAC ? MAC_WAIT_MS : 0, &from);
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

// ---- a further interface ------------------------------------------------------------------------

// One policy seen from the interface.
struct gate_seen {
	const struct instance *instance;
	struct generation_about *about;
	uint32_t generation;
	uint8_t class; // the interface's number in the policy + 1; 0: not named, or it names none
	bool holds;
};

static int look(const struct instance *i, uint32_t generation, const struct link *link,
		struct gate_seen *s, struct err *err)
{
	struct reach reach;
	int code = generation_read_about(i, generation, s->about, err);

	if (code)
		return code;
	if ((code = reach_read(i, generation, &reach, err)))
		return code;
	s->instance = i;
	s->generation = generation;
	s->class = generation_class(s->about, link->name);
	s->holds = !reach.empty && (!reach.named || s->class);
	return 0;
}

// Words of the policy's record: only the record knows names and locations of rules.
static bool describe_rule(const struct gate_seen *s, const struct test_result *r, char *buf,
			  size_t size)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	const char *names[WEIR_IFACES];
	CLEANUP(revision_free) struct revision revision = {0};
	bool known = s->about->revision[0] && !revisions_load(s->instance->name, s->about->revision,
							      &c->environment, &revision, NULL);

	for (uint32_t n = 0; n < s->about->n_ifaces; n++)
		names[n] = s->about->ifaces[n];
	if (!s->about->revision[0] && s->about->quick) {
		revision.path = mem_strdup(candidate_no_policy(c));
		known = true;
	}
	known = known && !quick_read_version(s->instance->name, s->about->quick, &c->quick, NULL) &&
		!candidate_compile(c, revision.path, names, s->about->n_ifaces) &&
		r->rule < (int32_t)c->image->n_rules;
	if (known)
		decision_describe(c, r, buf, size);
	return known;
}

static void describe(const struct gate_seen *s, const struct test_result *r, char *buf, size_t size)
{
	if (r->reason == REASON_DROP_BLOCK_FROM || r->reason == REASON_DROP_BLOCK_TO)
		snprintf(buf, size, "drop (%s)", reason_text(r->reason));
	else if (!describe_rule(s, r, buf, size))
		snprintf(buf, size, "%s", reason_text(r->reason));
}

static int ask_packet(const struct gate_seen *s, struct test_program *test,
		      const struct resolved_packet *packet, struct test_result *ret,
		      struct err *err)
{
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	const struct policy_test question = {.iface = s->class, .live = 1, .calm = 1};
	size_t length;
	int code = frame_build(packet, frame, &length, err);

	return code ? code : test_program_run(test, frame, length, &question, ret, err);
}

// Do the packets of the login pass on the device? If not, the answer in words.
static int ask(const struct gate_seen *s, const struct gate *gate, const char *device, bool *ret,
	       char *buf, size_t size, struct err *err)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	CLEANUP_TEST_PROGRAM struct test_program *test = NULL;
	struct resolved_packet packets[LOGIN_PACKETS];
	const struct session *session = gate->session;
	struct test_result result;
	struct peer_mac from;
	int code = generation_open(s->instance, s->generation, &g, err);

	if (code)
		return code;
	if ((code = test_program_open(s->instance, g, &test, err)))
		return code;
	*ret = true;
	peer_mac_find(&session->peer, test_program_asks_mac(test) ? MAC_WAIT_MS : 0, &from);
	if (s->holds && test_program_asks_mac(test) && !peer_mac_is_certain(&from))
		return gate->trial ? 0 : refuse_mac(session, &from, device, false, err);
	login_packets(session, &from, packets);
	for (size_t n = 0; n < LOGIN_PACKETS && *ret; n++) {
		if ((code = ask_packet(s, test, &packets[n], &result, err)))
			return code;
		*ret = result.verdict == XDP_PASS;
	}
	if (!*ret)
		describe(s, &result, buf, size);
	return 0;
}

static int check_known(const struct gate_seen *s, const struct link *link, const struct gate *gate,
		       char *ret_warning, size_t size, struct err *err)
{
	char verdict[512] = "";
	addr_text peer;
	bool pass = true;
	int code = 0;

	// Without a policy and without entries nothing can be dropped that a login sends.
	if (s->holds || s->instance->knobs->overlay)
		code = ask(s, gate, link->name, &pass, verdict, sizeof(verdict), err);
	if (code || pass)
		return code;
	addr_format(&gate->session->peer, peer);
	if (gate->trial) {
		snprintf(ret_warning, size, "your own login from %s is now cut off on '%s': %s",
			 peer, link->name, verdict);
		return 0;
	}
	err_refused(err, "attaching to '%s' would cut off your own login from %s: %s", link->name,
		    peer, verdict);
	err_hint(err,
		 "weir attach %s --confirm tries it and reverts by itself; --force attaches anyway",
		 link->name);
	return -EPERM;
}

static int check(const struct instance *i, uint32_t generation, const struct link *link,
		 const struct gate *gate, char *ret_warning, size_t size, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct gate_seen s = {.about = about};
	int code = look(i, generation, link, &s, err);

	if (code)
		return code;
	if (session_placed(gate->session) == SESSION_KNOWN)
		return check_known(&s, link, gate, ret_warning, size, err);
	return s.holds && !gate->trial ? refuse_unknown(gate->session, link->name, err) : 0;
}

// Does the login come in here?
static int concerns(const struct link *link, const struct gate *gate, bool *ret, struct err *err)
{
	CLEANUP_SESSION_WAYS struct session_ways ways = {0};
	int code;

	*ret = session_placed(gate->session) != SESSION_NONE && !gate->force;
	if (!*ret || session_placed(gate->session) == SESSION_UNKNOWN)
		return 0;
	code = session_ways(gate->session, &ways, err);
	if (code)
		return code;
	*ret = session_uses(&ways, link->index);
	return 0;
}

int gate_check(const struct instance *i, const struct link *link, const struct gate *gate,
	       char *ret_warning, size_t size, struct err *err)
{
	struct commit_state state;
	uint32_t now;
	bool concerned;
	int code = concerns(link, gate, &concerned, err);

	if (code || !concerned)
		return code;
	if ((code = commit_read(i, &state, err)))
		return code;
	now = state.in_force;
	code = check(i, now, link, gate, ret_warning, size, err);
	if (code)
		return code;
	return state.deadline && now != state.previous
		       ? check(i, state.previous, link, gate, ret_warning, size, err)
		       : 0;
}
