// SPDX-License-Identifier: GPL-2.0-only
// Services in nat and fullnat within a whole policy: through root, the short program, the general
// one, and back; what is counted, and what test programs say.
#include <string.h>

#include "tests/datapath/nat_world.h"
#include "tests/datapath/suite.h"

#define VERIFIED_MAX 57000 // instructions
#define SYN          0x02
#define ACK          0x10
#define SYN_ACK      0x12

// ---- packets ------------------------------------------------------------------------------------

static uint8_t sent[NAT_WORLD_FRAME]; // the last frame, as it left

// The frame was counted once, with this reason.
static bool sends(struct test *t, const struct nat_rig *r, const struct nat_names_of_frame *n,
		  uint8_t flags, enum weir_reason reason)
{
	struct frame f = {0};
	struct outcome o;

	f.len = nat_world_frame(n, flags, f.at);
	o = rig_send_on(r->rig, RIG_IFACE, &f, 0);
	if (!CHECK(t, o.moved_n == 1 && o.moved[0].reason == reason && o.moved[0].by.packets == 1,
		   "%zu reasons, the first is %s instead of %s", o.moved_n,
		   o.moved_n ? reason_name(o.moved[0].reason) : "none", reason_name(reason)))
		return false;
	memcpy(sent, o.out->at, sizeof(sent));
	return true;
}

static uint8_t last(uint8_t family, const uint8_t *address)
{
	return address[family == 4 ? 3 : 15];
}

// A connection there and back, from the client with this last byte.
static void check_connection(struct test *t, const struct nat_rig *r, uint8_t family,
			     uint8_t client, uint8_t vip)
{
	struct nat_names_of_frame n = nat_world_names(family, client, vip), to, back;
	bool fullnat = vip == VIP_FULLNAT;

	if (!sends(t, r, &n, SYN, REASON_PASS_SERVICE))
		return;
	to = nat_world_read(sent);
	CHECK(t, last(family, to.dst) == BACKEND && to.dport == NAT_WORLD_PORT,
	      "not to the backend");
	CHECK(t, last(family, to.src) == (fullnat ? SOURCE : client), "another source");
	CHECK(t, fullnat ? to.sport >= NAT_RESERVED : to.sport == n.sport, "port %u", to.sport);
	back = nat_world_turned(&to);
	if (!sends(t, r, &back, SYN_ACK, REASON_PASS_ANSWER_NAT))
		return;
	to = nat_world_read(sent);
	CHECK(t, last(family, to.src) == vip && to.sport == n.dport, "not from the VIP");
	CHECK(t, last(family, to.dst) == client && to.dport == n.sport, "another client");
	sends(t, r, &n, ACK, REASON_PASS_SERVICE);
	n.sport++;
	sends(t, r, &n, ACK, REASON_DROP_NAT_UNKNOWN);
	back.sport++;
	sends(t, r, &back, ACK, REASON_PASS_DEFAULT);
	back.sport--;
	back.dport++;
	sends(t, r, &back, ACK, REASON_PASS_DEFAULT);
}

// moved: since the policy was loaded.
static void check_counters(struct test *t, const struct nat_rig *r,
			   const struct service_counter *moved, enum nat_world_service service)
{
	const struct lb_state *lb = r->policy->c->lb.lb;
	const struct lb_service *s = &lb->services[service];
	const struct service_counter *c = &moved[s->id];
	const struct service_counter *b = &moved[lb->members[s->first_member].id];
	uint32_t length = service == NEAR4 || service == FAR4 ? 40 : 60;

	CHECK(t, c->packets == 2 && c->bytes == 2 * length && c->event[SERVICE_OPENED] == 1,
	      "the service has %llu packets", c->packets);
	CHECK(t, c->back_packets == 1 && c->back_bytes == length, "%llu back", c->back_packets);
	CHECK(t, c->dropped[REASON_DROP_NAT_UNKNOWN - REASON_DROP_NO_BACKEND] == 1, "dropped");
	CHECK(t, b->packets == 2 && b->back_packets == 1, "the backend has %llu", b->packets);
}

static void test_connections(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	const struct service_counter *moved;

	for (uint8_t family = 4; family <= 6; family += 2) {
		check_connection(t, r, family, CLIENT, VIP_NAT);
		check_connection(t, r, family, CLIENT, VIP_FULLNAT);
	}
	moved = balance_rig_moved(r->policy);
	for (enum nat_world_service s = NEAR4; s <= FAR6; s++)
		check_counters(t, r, moved, s);
	nat_rig_free(r);
}

// The rules precede, and a rule that logs leaves its packets to the general program.
static void test_rules(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct nat_names_of_frame n = nat_world_names(4, 66, VIP_NAT);

	sends(t, r, &n, SYN, REASON_DROP_RULE);
	check_connection(t, r, 4, 77, VIP_NAT);
	check_connection(t, r, 4, 77, VIP_FULLNAT);
	nat_rig_free(r);
}

// Entries for the client as a destination stop answers; others do not.
static void test_entries(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT), back;

	sends(t, r, &n, SYN, REASON_PASS_SERVICE);
	back = nat_world_read(sent);
	back = nat_world_turned(&back);
	rig_overlay_text(r->rig, "block-from 10.0.0.5, block-from 10.0.0.2, block-from 10.0.0.3");
	sends(t, r, &back, SYN_ACK, REASON_PASS_ANSWER_NAT);
	sends(t, r, &n, ACK, REASON_DROP_BLOCK_FROM);
	rig_overlay_text(r->rig, "block-to 10.0.0.5");
	sends(t, r, &back, SYN_ACK, REASON_DROP_BLOCK_TO);
	rig_overlay_text(r->rig, "block-to 10.0.0.0/29");
	sends(t, r, &back, SYN_ACK, REASON_DROP_BLOCK_TO);
	rig_overlay_text(r->rig, "block-to 10.0.0.0/29, allow-to 10.0.0.5");
	sends(t, r, &back, SYN_ACK, REASON_PASS_ANSWER_NAT);
	rig_overlay_text(r->rig, "");
	nat_rig_free(r);
}

// ---- test programs ------------------------------------------------------------------------------

static struct test_result ask(const struct nat_rig *r, const struct nat_names_of_frame *n,
			      uint8_t flags)
{
	struct frame f = {0};

	f.len = nat_world_frame(n, flags, f.at);
	return balance_rig_ask(r->policy, &f);
}

static void test_questions(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT), back;
	struct test_result a = ask(r, &n, SYN);
	const struct lb_state *lb = r->policy->c->lb.lb;

	CHECK(t, a.reason == REASON_PASS_SERVICE && a.service == FAR4 && !a.pinned, "reason %s",
	      reason_name(a.reason));
	CHECK(t, a.backend == lb->members[lb->services[FAR4].first_member].id, "backend %u",
	      a.backend);
	CHECK(t, ask(r, &n, ACK).reason == REASON_DROP_NAT_UNKNOWN, "a question took a place");
	sends(t, r, &n, SYN, REASON_PASS_SERVICE);
	back = nat_world_read(sent);
	back = nat_world_turned(&back);
	a = ask(r, &back, SYN_ACK);
	CHECK(t, a.reason == REASON_PASS_ANSWER_NAT && a.service == FAR4, "reason %s",
	      reason_name(a.reason));
	CHECK(t, ask(r, &n, ACK).pinned, "the connection is not known");
	nat_rig_free(r);
}

static void test_programs_verified(struct test *t)
{
	struct nat_rig *r = nat_world_new(true);

	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++) {
		uint32_t verified = r->policy->cost.program[p].verified;

		CHECK(t, verified <= VERIFIED_MAX && (verified || rig_is_general_only()),
		      "program %d: %u instructions verified", p, verified);
	}
	nat_rig_free(r);
}

const struct named_test nat_policy_tests[] = {
	{"nat: connections through a policy", test_connections},
	{"nat: rules come first", test_rules},
	{"nat: entries for the client", test_entries},
	{"nat: what the verifier follows in a policy", test_programs_verified},
	{"nat: questions take no place", test_questions},
	{0},
};
