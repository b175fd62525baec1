// SPDX-License-Identifier: GPL-2.0-only
// Checks expectations: the names exist, and the packet can exist.

#include "ctl/policy/checker.h"

#define fail(k, at, hint, ...) (diag_error((k)->c->diag, at, hint, __VA_ARGS__), (k)->ok = false)

struct expect_check {
	struct checker *c;
	struct ast_expect *ast;
	bool ok;
};

// ---- verdict ------------------------------------------------------------------------------------

static void check_target(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;
	uint32_t number;

	if (a->verdict != EXPECT_SERVICE)
		return;
	number = index_find(&k->c->ast->service_index, a->target);
	if (number == INDEX_NONE)
		fail(k, a->target_at, "pass, drop, reject, redirect INTERFACE, or a service",
		     "unknown service '%s'%s", a->target,
		     check_suggest(k->c, SPACE_SERVICES, "", a->target));
}

static void check_via(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;
	uint32_t number;

	if (a->via != VIA_RULE)
		return;
	number = ast_find_rule(k->c->ast, a->rule);
	if (number != INDEX_NONE && k->c->ast->rules.at[number].quick)
		fail(k, a->via_at, "name a rule of the policy", "'%s' is a quick rule", a->rule);
	if (number == INDEX_NONE)
		fail(k, a->via_at, NULL, "unknown rule '%s'%s", a->rule,
		     check_suggest(k->c, SPACE_RULES, "", a->rule));
}

static void check_answer(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;
	const struct ast_packet *p = &a->packet;
	uint32_t number = index_find(&k->c->ast->service_index, a->target);
	const struct ast_service *s = number == INDEX_NONE ? NULL : &k->c->ast->services.at[number];

	if (a->via != VIA_ANY)
		fail(k, a->via_at, "leave out 'via'", "answers are sent before the rules");
	if (p->ethertype || p->type.given || p->fragment)
		fail(k, p->at, NULL, "an answer of a backend is tcp, udp or sctp");
	if (s && !s->broken && !(service_mode_does((enum service_mode)s->mode) & MODE_NAT))
		fail(k, a->answer_at, "only in mode nat and mode fullnat this host sends them",
		     "the backends of service '%s' send answers to clients themselves", a->target);
}

// ---- packet -------------------------------------------------------------------------------------

static void check_packet(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;

	if (a->flags.given || a->type.given || a->ttl.given || a->fragment || a->established ||
	    a->unroutable)
		fail(k, a->at, "a frame takes vlan, mac, length and on",
		     "only an IP packet has these fields");
}

void check_expect(struct checker *c, struct ast_expect *a)
{
	struct expect_check k = {.c = c, .ast = a, .ok = true};

	check_target(&k);
	check_via(&k);
	if (a->answer)
		check_answer(&k);
	if (a->packet.ethertype)
		check_packet(&k);
	else if (!check_addresses(c, &a->packet.from, SIDE_FROM) ||
		 !check_addresses(c, &a->packet.to, SIDE_TO))
		k.ok = false;
	a->broken = !k.ok;
}
