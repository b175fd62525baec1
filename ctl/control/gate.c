// SPDX-License-Identifier: GPL-2.0-only
// Runs the packets of the login through the programs of the policies that they would meet on the
// interface.
#include "ctl/control/gate.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/control/decision.h"
#include "ctl/control/frame.h"
#include "ctl/control/login_packets.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/reach.h"
#include "ctl/datapath/test_program.h"

// One policy seen from the interface.
struct gate_seen {
	const struct instance *instance;
	struct generation_about *about;
	uint32_t generation;
	uint8_t class; // the interface's number in the policy + 1; 0: not named, or it names none
	bool holds;
	bool answered; // the route to the peer leads by the interface
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

// The policy of the record: only the record knows names and locations of rules, and the MAC
// addresses that they name. False: it cannot be read.
static bool compile_seen(const struct gate_seen *s, struct candidate *c, struct revision *r)
{
	const char *names[WEIR_IFACES];
	bool known = s->about->revision[0] && !revisions_load(s->instance->name, s->about->revision,
							      &c->environment, r, NULL);

	for (uint32_t n = 0; n < s->about->n_ifaces; n++)
		names[n] = s->about->ifaces[n];
	if (!s->about->revision[0] && s->about->quick) {
		r->path = mem_strdup(candidate_no_policy(c));
		known = true;
	}
	return known && !quick_read_version(s->instance->name, s->about->quick, &c->quick, NULL) &&
	       !candidate_compile(c, r->path, names, s->about->n_ifaces);
}

static bool describe_rule(const struct gate_seen *s, const struct test_result *r, char *buf,
			  size_t size)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP(revision_free) struct revision revision = {0};
	bool known = compile_seen(s, c, &revision) && r->rule < (int32_t)c->image->n_rules;

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
	const struct policy_test question = {
		.iface = s->class, .live = 1, .calm = 1, .unroutable = !s->answered};
	size_t length;
	int code = frame_build(packet, frame, &length, err);

	return code ? code : test_program_run(test, frame, length, &question, ret, err);
}

static int refuse(const struct gate_seen *s, const struct gate *gate, const char *device,
		  const struct test_result *r, char *ret_warning, size_t size, struct err *err)
{
	char verdict[512] = "";
	addr_text peer;

	describe(s, r, verdict, sizeof(verdict));
	addr_format(&gate->session->peer, peer);
	if (gate->trial) {
		snprintf(ret_warning, size, "your own login from %s is now cut off on '%s': %s",
			 peer, device, verdict);
		return 0;
	}
	err_refused(err, "attaching to '%s' would cut off your own login from %s: %s", device, peer,
		    verdict);
	err_hint(err,
		 "weir attach %s --confirm tries it and reverts by itself; --force attaches anyway",
		 device);
	return -EPERM;
}

static int refuse_mac(const struct gate *gate, const struct peer_mac *from, const char *device,
		      char *ret_warning, size_t size, struct err *err)
{
	struct err why = {0};

	login_refuse_mac(gate->session, from, device, false, &why);
	if (!gate->trial) {
		*err = why;
		return -EPERM;
	}
	snprintf(ret_warning, size, "%s", why.text);
	return 0;
}

// The packets of a login on the device, and the MAC addresses that they may have.
struct gate_probe {
	struct test_program *test;
	struct peer_mac from;
	struct mac_classes macs;
	bool mac_decides; // for one of the packets
};

// *ret_dropped: with each of its MAC addresses.
static int ask_each(const struct gate_seen *s, struct gate_probe *probe, struct resolved_packet *p,
		    bool *ret_dropped, struct test_result *ret, struct err *err)
{
	struct mac_answers answers = packet_no_answers(&probe->macs, &probe->from);

	vec_each (&probe->macs.of, mac) {
		int code;

		packet_set_mac(p, *mac);
		if ((code = ask_packet(s, probe->test, p, ret, err)))
			return code;
		*(ret->verdict == XDP_PASS ? &answers.pass : &answers.drop) = true;
	}
	probe->mac_decides |= packet_mac_decides(&answers, &probe->from);
	*ret_dropped = answers.drop && !answers.pass;
	return 0;
}

static int ask(const struct gate_seen *s, const struct gate *gate, const char *device,
	       struct gate_probe *probe, char *ret_warning, size_t size, struct err *err)
{
	for (size_t n = 0; n < LOGIN_PACKETS; n++) {
		struct resolved_packet p = login_packet(gate->session, n);
		struct test_result result = {0};
		bool dropped;
		int code = ask_each(s, probe, &p, &dropped, &result, err);

		if (code)
			return code;
		if (dropped)
			return refuse(s, gate, device, &result, ret_warning, size, err);
	}
	if (!probe->mac_decides)
		return 0;
	return refuse_mac(gate, &probe->from, device, ret_warning, size, err);
}

static void find_macs(const struct gate_seen *s, struct gate_probe *probe)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP(revision_free) struct revision revision = {0};
	static const struct resolved no_macs;

	if (!s->holds || !test_program_asks_mac(probe->test))
		packet_macs(&probe->from, &no_macs, &probe->macs);
	else if (peer_mac_is_certain(&probe->from) || !compile_seen(s, c, &revision))
		packet_macs(&probe->from, NULL, &probe->macs);
	else
		packet_macs(&probe->from, c->resolved, &probe->macs);
}

static int check_known(const struct gate_seen *s, const struct link *link, const struct gate *gate,
		       char *ret_warning, size_t size, struct err *err)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	CLEANUP_TEST_PROGRAM struct test_program *test = NULL;
	struct gate_probe probe = {0};
	int code;

	// Without a policy and without entries nothing can be dropped that a login sends.
	if (!s->holds && !s->instance->knobs->overlay)
		return 0;
	if ((code = generation_open(s->instance, s->generation, &g, err)))
		return code;
	if ((code = test_program_open(s->instance, g, &test, err)))
		return code;
	probe.test = test;
	peer_mac_find(&gate->session->peer, &gate->session->local, &probe.from);
	find_macs(s, &probe);
	code = ask(s, gate, link->name, &probe, ret_warning, size, err);
	mac_classes_free(&probe.macs);
	return code;
}

static int check(const struct instance *i, uint32_t generation, const struct link *link,
		 const struct gate *gate, bool answered, char *ret_warning, size_t size,
		 struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct gate_seen s = {.about = about, .answered = answered};
	int code = look(i, generation, link, &s, err);

	if (code)
		return code;
	if (session_placed(gate->session) == SESSION_KNOWN)
		return check_known(&s, link, gate, ret_warning, size, err);
	return s.holds && !gate->trial ? login_refuse_unknown(gate->session, link->name, err) : 0;
}

// Can the login use the link, and does the route to its peer lead by it?
static int concerns(const struct link *link, const struct gate *gate, bool *ret, bool *ret_answered,
		    struct err *err)
{
	CLEANUP_SESSION_WAYS struct session_ways ways = {0};
	int code;

	*ret_answered = true;
	*ret = session_placed(gate->session) != SESSION_NONE && !gate->force;
	if (!*ret || session_placed(gate->session) == SESSION_UNKNOWN)
		return 0;
	code = session_ways(gate->session, &ways, err);
	if (code)
		return code;
	*ret = session_uses(&ways, link->index);
	*ret_answered = session_answers(&ways, link->index);
	return 0;
}

int gate_check(const struct instance *i, const struct link *link, const struct gate *gate,
	       char *ret_warning, size_t size, struct err *err)
{
	struct commit_state state;
	uint32_t now;
	bool concerned, answered;
	int code = concerns(link, gate, &concerned, &answered, err);

	if (code || !concerned)
		return code;
	if ((code = commit_read(i, &state, err)))
		return code;
	now = state.in_force;
	code = check(i, now, link, gate, answered, ret_warning, size, err);
	if (code)
		return code;
	return state.deadline && now != state.previous
		       ? check(i, state.previous, link, gate, answered, ret_warning, size, err)
		       : 0;
}

void gate_prepare(const struct session *s, bool force)
{
	struct peer_ends ends;

	if (force || session_placed(s) != SESSION_KNOWN)
		return;
	ends = (struct peer_ends){s->peer, s->local, 0};
	peer_mac_ask(&ends, 1);
}
