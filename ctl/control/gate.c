// SPDX-License-Identifier: GPL-2.0-only
// Runs a packet of the login through test programs of the policies that packets on an interface
// would meet.
#include "ctl/control/gate.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/control/frame.h"
#include "ctl/control/login.h"
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

// Words of the policy's record, which alone knows the rules' names and places.
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
	known = known && !candidate_compile(c, revision.path, names, s->about->n_ifaces) &&
		r->rule < (int32_t)c->image->n_rules;
	if (known)
		candidate_describe(c, r, buf, size);
	return known;
}

static void describe(const struct gate_seen *s, const struct test_result *r, char *buf, size_t size)
{
	if (r->reason == REASON_DROP_BLOCK_FROM || r->reason == REASON_DROP_BLOCK_TO)
		snprintf(buf, size, "drop (%s)", reason_text(r->reason));
	else if (!describe_rule(s, r, buf, size))
		snprintf(buf, size, "%s", reason_text(r->reason));
}

// Does a packet of the login pass? If not, the answer in words.
static int ask(const struct gate_seen *s, const struct session *session, bool *ret, char *buf,
	       size_t size, struct err *err)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	CLEANUP_TEST_PROGRAM struct test_program *test = NULL;
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	const struct resolved_packet packet = login_packet(session);
	const struct policy_test question = {.iface = s->class, .live = 1, .calm = 1};
	struct test_result result;
	size_t length;
	int code = generation_open(s->instance, s->generation, &g, err);

	if (code)
		return code;
	if ((code = test_program_open(s->instance, g, &test, err)))
		return code;
	if ((code = frame_build(&packet, frame, &length, err)))
		return code;
	if ((code = test_program_run(test, frame, length, &question, &result, err)))
		return code;
	*ret = result.verdict == XDP_PASS;
	if (!*ret)
		describe(s, &result, buf, size);
	return 0;
}

static int refuse_unknown(const struct session *session, const char *device, struct err *err)
{
	if (session->remote)
		err_refused(
			err,
			"cannot tell where this remote login comes from, so cannot check that the active policy passes it on '%s'",
			device);
	else
		err_refused(
			err,
			"cannot find your login (%s), so cannot check that the active policy passes it on '%s'",
			err_why(session->error), device);
	err_hint(err, "weir attach %s --confirm tries it and reverts by itself", device);
	return -EPERM;
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
		code = ask(s, gate->session, &pass, verdict, sizeof(verdict), err);
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
	if (login_of(gate->session) == LOGIN_KNOWN)
		return check_known(&s, link, gate, ret_warning, size, err);
	return s.holds && !gate->trial ? refuse_unknown(gate->session, link->name, err) : 0;
}

// Does the login come in here?
static int concerns(const struct link *link, const struct gate *gate, bool *ret, struct err *err)
{
	CLEANUP_LOGIN_WAYS struct login_ways ways = {0};
	int code;

	*ret = login_of(gate->session) != LOGIN_NONE && !gate->force;
	if (!*ret || login_of(gate->session) == LOGIN_UNKNOWN)
		return 0;
	code = login_ways(gate->session, &ways, err);
	if (code)
		return code;
	*ret = login_uses(&ways, link->index);
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
