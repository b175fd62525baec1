// SPDX-License-Identifier: GPL-2.0-only
// Services in nat and fullnat within a whole policy: through root, the short program, the general
// one, and back; what is counted, and what test programs say.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/test_program.h"
#include "tests/datapath/nat_policy_rig.h"
#include "tests/datapath/rig.h"
#include "tests/datapath/suite.h"

#define VERIFIED_MAX 57000 // instructions
#define SYN          0x02
#define ACK          0x10
#define SYN_ACK      0x12

// ---- packets ------------------------------------------------------------------------------------

static uint8_t sent[NAT_WORLD_FRAME]; // the last frame, as it left

// The frame was counted once, with this reason.
static bool sends(struct test *t, struct nat_policy *w, const struct nat_names_of_frame *n,
		  uint8_t flags, enum weir_reason reason)
{
	struct frame f = {0};
	struct outcome o;

	f.len = nat_world_frame(n, flags, f.at);
	o = rig_send_on(w->rig, RIG_IFACE, &f, 0);
	if (!CHECK(t, o.moved_n == 1 && o.moved[0].reason == reason && o.moved[0].by.packets == 1,
		   "%zu reasons, the first is %s instead of %s", o.moved_n,
		   o.moved_n ? reason_name(o.moved[0].reason) : "none", reason_name(reason)))
		return false;
	memcpy(sent, o.out->at, sizeof(sent));
	return true;
}

static struct nat_names_of_frame turned(const struct nat_names_of_frame *n)
{
	struct nat_names_of_frame back = {
		.family = n->family, .sport = n->dport, .dport = n->sport};

	memcpy(back.src, n->dst, sizeof(back.src));
	memcpy(back.dst, n->src, sizeof(back.dst));
	return back;
}

// A connection there and back, from the client with this last byte.
static void check_connection(struct test *t, struct nat_policy *w, uint8_t client, uint8_t vip)
{
	struct nat_names_of_frame n = nat_world_names(4, client, vip), to, back;

	if (!sends(t, w, &n, SYN, REASON_PASS_SERVICE))
		return;
	to = nat_world_read(sent);
	CHECK(t, to.dst[3] == BACKEND, "not to the backend");
	CHECK(t, to.src[3] == (vip == VIP_FULLNAT ? SOURCE : client), "from .%u", to.src[3]);
	back = turned(&to);
	if (!sends(t, w, &back, SYN_ACK, REASON_PASS_ANSWER_NAT))
		return;
	to = nat_world_read(sent);
	CHECK(t, to.src[3] == vip && to.dst[3] == client && to.dport == n.sport, "another client");
	sends(t, w, &n, ACK, REASON_PASS_SERVICE);
	n.sport++;
	sends(t, w, &n, ACK, REASON_DROP_NAT_UNKNOWN);
	back.dport++;
	sends(t, w, &back, ACK, REASON_PASS_DEFAULT);
}

static struct service_counter counted(const struct nat_policy *w, uint32_t id)
{
	CLEANUP_FREE struct service_counter *values = NULL;
	struct service_counter sum = {0};
	struct err err = {0};
	size_t cpus;

	if (percpu_values(1, sizeof(*values), &values, &cpus, &err) ||
	    bpf_map_lookup_elem(w->c->generation->fd[PART_BACKEND_COUNTERS], &id, values))
		test_die(&err);
	for (size_t c = 0; c < cpus; c++) {
		sum.packets += values[c].packets;
		sum.bytes += values[c].bytes;
		sum.back_packets += values[c].back_packets;
		sum.back_bytes += values[c].back_bytes;
		sum.event[SERVICE_OPENED] += values[c].event[SERVICE_OPENED];
		sum.dropped[REASON_DROP_NAT_UNKNOWN - REASON_DROP_NO_BACKEND] +=
			values[c].dropped[REASON_DROP_NAT_UNKNOWN - REASON_DROP_NO_BACKEND];
	}
	return sum;
}

static void check_counters(struct test *t, const struct nat_policy *w, uint32_t service)
{
	const struct lb_service *s = &w->c->lb.lb->services[service];
	struct service_counter c = counted(w, s->id);
	struct service_counter b = counted(w, w->c->lb.lb->members[s->first_member].id);

	CHECK(t, c.packets == 2 && c.bytes == 80 && c.event[SERVICE_OPENED] == 1,
	      "the service has %llu packets", c.packets);
	CHECK(t, c.back_packets == 1 && c.back_bytes == 40, "%llu back", c.back_packets);
	CHECK(t, c.dropped[REASON_DROP_NAT_UNKNOWN - REASON_DROP_NO_BACKEND] == 1, "dropped");
	CHECK(t, b.packets == 2 && b.back_packets == 1, "the backend has %llu", b.packets);
}

static void test_connections(struct test *t)
{
	struct nat_policy *w = nat_policy_new(false);

	check_connection(t, w, CLIENT, VIP_NAT);
	check_connection(t, w, CLIENT, VIP_FULLNAT);
	check_counters(t, w, 0);
	check_counters(t, w, 1);
	nat_policy_free(w);
}

// The rules precede, and a rule that logs leaves its packets to the general program.
static void test_rules(struct test *t)
{
	struct nat_policy *w = nat_policy_new(false);
	struct nat_names_of_frame n = nat_world_names(4, 66, VIP_NAT);

	sends(t, w, &n, SYN, REASON_DROP_RULE);
	check_connection(t, w, 77, VIP_NAT);
	check_connection(t, w, 77, VIP_FULLNAT);
	nat_policy_free(w);
}

// Entries for the client as a destination stop answers; others do not.
static void test_entries(struct test *t)
{
	struct nat_policy *w = nat_policy_new(false);
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT), back;

	sends(t, w, &n, SYN, REASON_PASS_SERVICE);
	back = nat_world_read(sent);
	back = turned(&back);
	rig_overlay_text(w->rig, "block-from 10.0.0.5, block-from 10.0.0.2, block-from 10.0.0.3");
	sends(t, w, &back, SYN_ACK, REASON_PASS_ANSWER_NAT);
	sends(t, w, &n, ACK, REASON_DROP_BLOCK_FROM);
	rig_overlay_text(w->rig, "block-to 10.0.0.5");
	sends(t, w, &back, SYN_ACK, REASON_DROP_BLOCK_TO);
	rig_overlay_text(w->rig, "block-to 10.0.0.0/29");
	sends(t, w, &back, SYN_ACK, REASON_DROP_BLOCK_TO);
	rig_overlay_text(w->rig, "block-to 10.0.0.0/29, allow-to 10.0.0.5");
	sends(t, w, &back, SYN_ACK, REASON_PASS_ANSWER_NAT);
	rig_overlay_text(w->rig, "");
	nat_policy_free(w);
}

// A connection that began before: in the own bucket of its first half.
static bool begin_old(struct nat_policy *w, uint32_t end, const struct nat_names_of_frame *n,
		      uint16_t backend)
{
	struct nat_bucket4 *places = w->places[0][1].at;
	struct nat_entry4 *e;
	uint32_t client, half;

	memcpy(&client, n->src, sizeof(client));
	half = (uint32_t)nat_hash4(&w->nat->key, client, htons(n->sport), IPPROTO_TCP);
	e = places[nat_group(4, 0, half) + nat_own_bucket(4, half)].at;
	if (e->word)
		return false;
	e->last = client | (uint64_t)htons(n->sport) << NAT_PORT_SHIFT |
		  (uint64_t)end << NAT_END_SHIFT;
	e->word = nat_pack(NAT_TALKS, rig_clock(w->rig).jiffies >> w->nat->shift, backend, 0);
	return true;
}

// Services that have left nat and fullnat: their connections stay, and none begins.
static void test_former(struct test *t)
{
	struct nat_policy *after = nat_policy_new(true);
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT), to, back;
	const struct lb_service *s;

	s = &after->c->lb.lb->services[1];
	sends(t, after, &n, SYN, REASON_PASS_SERVICE);
	to = nat_world_read(sent);
	CHECK(t, to.dst[3] == VIP_FULLNAT && to.src[3] == CLIENT, "dr has changed addresses");
	CHECK(t, begin_old(after, 2, &n, after->c->lb.lb->members[s->first_member].id), "no place");
	sends(t, after, &n, ACK, REASON_PASS_SERVICE);
	to = nat_world_read(sent);
	CHECK(t, to.dst[3] == BACKEND && to.src[3] == SOURCE, "the connection was not kept");
	back = turned(&to);
	sends(t, after, &back, ACK, REASON_PASS_ANSWER_NAT);
	n.sport++;
	sends(t, after, &n, ACK, REASON_PASS_SERVICE);
	to = nat_world_read(sent);
	CHECK(t, to.dst[3] == VIP_FULLNAT, "another connection is dr");
	nat_policy_free(after);
}

// On trial a policy may lack a service whose connections live.
static void test_without_the_service(struct test *t)
{
	struct nat_policy *w = nat_policy_new(false);
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_NAT), back;
	struct mapping uses = {0};
	struct err err = {0};

	sends(t, w, &n, SYN, REASON_PASS_SERVICE);
	back = nat_world_read(sent);
	back = turned(&back);
	if (mapping_open(&uses, w->c->generation->fd[PART_NAT_USES], sizeof(w->uses), &err))
		test_die(&err);
	memset(uses.at, 0, sizeof(w->uses));
	mapping_close(&uses);
	sends(t, w, &back, SYN_ACK, REASON_PASS_ANSWER_NAT);
	CHECK(t, nat_world_read(sent).src[3] == VIP_NAT, "the answer is from the backend");
	nat_policy_free(w);
}

// ---- test programs ------------------------------------------------------------------------------

static struct test_result ask(const struct nat_policy *w, const struct nat_names_of_frame *n,
			      uint8_t flags)
{
	const struct policy_test question = {.live = 1};
	struct test_result result = {0};
	struct frame f = {0};
	struct err err = {0};

	f.len = nat_world_frame(n, flags, f.at);
	if (test_program_run(w->test, f.at, f.len, &question, &result, &err))
		test_die(&err);
	return result;
}

static void test_questions(struct test *t)
{
	struct nat_policy *w = nat_policy_new(false);
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT), back;
	struct test_result r = ask(w, &n, SYN);
	const struct lb_service *s = &w->c->lb.lb->services[1];

	CHECK(t, r.reason == REASON_PASS_SERVICE && r.service == 1 && !r.pinned, "reason %s",
	      reason_name(r.reason));
	CHECK(t, r.backend == w->c->lb.lb->members[s->first_member].id, "backend %u", r.backend);
	CHECK(t, ask(w, &n, ACK).reason == REASON_DROP_NAT_UNKNOWN, "a question took a place");
	sends(t, w, &n, SYN, REASON_PASS_SERVICE);
	back = nat_world_read(sent);
	back = turned(&back);
	r = ask(w, &back, SYN_ACK);
	CHECK(t, r.reason == REASON_PASS_ANSWER_NAT && r.service == 1, "reason %s",
	      reason_name(r.reason));
	CHECK(t, ask(w, &n, ACK).pinned, "the connection is not known");
	nat_policy_free(w);
}

static void test_programs_verified(struct test *t)
{
	struct nat_policy *w = nat_policy_new(true);

	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++)
		CHECK(t,
		      w->cost.program[p].verified <= VERIFIED_MAX &&
			      (w->cost.program[p].verified || rig_is_general_only()),
		      "program %d: %u instructions verified", p, w->cost.program[p].verified);
	nat_policy_free(w);
}

const struct named_test nat_policy_tests[] = {
	{"nat: connections through a policy", test_connections},
	{"nat: rules come first", test_rules},
	{"nat: entries for the client", test_entries},
	{"nat: a service that has left it", test_former},
	{"nat: what the verifier follows in a policy", test_programs_verified},
	{"nat: answers without their service", test_without_the_service},
	{"nat: questions take no place", test_questions},
	{0},
};
