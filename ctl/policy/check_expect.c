// SPDX-License-Identifier: GPL-2.0-only
// Checks expectations: the names exist, and the packet can exist.
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/checker.h"
#include "ctl/policy/names.h"

struct expect_check {
	struct checker *c;
	struct ast_expect *ast;
	struct resolved_expect *ret;
	struct resolved_packet *packet; // what all packets of the line have in common
	bool ok;
};

__attribute__((format(printf, 4, 5))) static void fail(struct expect_check *k, struct diag_at at,
						       const char *hint, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	diag_error(k->c->diag, at, hint, "%s", text);
	k->ok = false;
}

// ---- verdict ------------------------------------------------------------------------------------

static void check_target(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;
	uint32_t number;

	k->ret->verdict = a->verdict;
	if (a->verdict == EXPECT_REDIRECT)
		k->ret->redirect = arena_strdup(&k->c->r->memory, a->target);
	if (a->verdict != EXPECT_SERVICE)
		return;
	number = index_find(&k->c->ast->service_index, a->target);
	if (number == INDEX_NONE)
		fail(k, a->target_at, "pass, drop, reject, redirect INTERFACE, or a service",
		     "unknown service '%s'%s", a->target,
		     check_suggest(k->c, SPACE_SERVICES, "", a->target));
	k->ret->service = number;
}

// By name, else by the text of a rule without one.
static uint32_t find_rule(const struct ast *ast, const char *name)
{
	uint32_t number = index_find(&ast->rule_index, name);

	for (size_t i = 0; number == INDEX_NONE && i < ast->rules.n; i++)
		if (!strcmp(ast->rules.at[i].identity, name))
			number = (uint32_t)i;
	return number;
}

static void check_via(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;

	k->ret->via = a->via;
	if (a->via != VIA_RULE)
		return;
	k->ret->rule = find_rule(k->c->ast, a->rule);
	if (k->ret->rule == INDEX_NONE)
		fail(k, a->via_at, NULL, "no rule is called '%s'%s", a->rule,
		     check_suggest(k->c, SPACE_RULES, "", a->rule));
}

// ---- packet -------------------------------------------------------------------------------------

// The interface that a device of this name is: the exact one, else the longest pattern.
static void check_on(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const struct resolved *r = k->c->r;
	size_t best = 0;
	bool found = false;

	for (size_t i = 0; a->on && i < r->n_interfaces; i++) {
		const char *name = r->interfaces[i].name;

		if (strcmp(name, a->on) != 0 && fnmatch(name, a->on, FNM_NOESCAPE) != 0)
			continue;
		if (found && strlen(name) < best && strcmp(name, a->on) != 0)
			continue;
		best = strcmp(name, a->on) != 0 ? strlen(name) : SIZE_MAX;
		k->packet->iface = (uint32_t)i;
		found = true;
	}
	if (a->on && !found)
		fail(k, a->on_at, "'interface' lists them",
		     "'%s' is not an interface of this policy", a->on);
}

static void check_frame(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	uint16_t values[2] = {0};
	uint32_t hex;
	size_t n = 0;

	if (a->flags.given || a->type.given || a->ttl.given || a->fragment || a->established)
		fail(k, a->at, "a frame has vlan, length and on",
		     "only an IP packet has these fields");
	if (!names_ethertype(a->ethertype, values, &n) && n)
		k->packet->ethertype = values[0];
	else if (!num_parse_hex32(a->ethertype, strlen(a->ethertype), &hex) && hex >= 0x600 &&
		 hex <= UINT16_MAX)
		k->packet->ethertype = (uint16_t)hex;
	else
		fail(k, a->ethertype_at, NULL, "'%s' is not one ethertype", a->ethertype);
	if (k->packet->ethertype == 0x0800 || k->packet->ethertype == 0x86dd)
		fail(k, a->ethertype_at, "write from ADDRESS to ADDRESS",
		     "an IP packet is known by its addresses");
}

static bool is_icmp(uint8_t proto)
{
	return proto == PROTO_ICMP || proto == PROTO_ICMP6;
}

static void check_proto(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const char *near;

	k->packet->proto = a->type.given ? 0 : PROTO_TCP; // 0 with a type: that of the family
	if (!a->proto || !names_proto(a->proto, &k->packet->proto))
		return;
	near = names_nearest(NAMES_PROTOS, a->proto);
	if (near)
		fail(k, a->proto_at, NULL, "'%s' is not a protocol, did you mean '%s'?", a->proto,
		     near);
	else
		fail(k, a->proto_at, NULL, "'%s' is not a protocol", a->proto);
}

static void check_type(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const char *word = a->type.given ? a->type.items.at[0].word : NULL;
	bool number;
	uint8_t type;

	if (!word)
		return;
	number = !num_parse_u32(word, strlen(word), 0, 255, &(uint32_t){0});
	if (a->proto && !is_icmp(k->packet->proto))
		fail(k, a->type.at, NULL, "'type' is of icmp and icmp6");
	else if (number && !a->proto)
		fail(k, a->type.at, "say icmp or icmp6",
		     "the number '%s' means another type in each family", word);
	else if (!number && (names_icmp(word, 4, &type) < 0 || k->packet->proto == PROTO_ICMP6) &&
		 (names_icmp(word, 6, &type) < 0 || k->packet->proto == PROTO_ICMP))
		fail(k, a->type.at, NULL, "'%.60s' is not an ICMP type%s", word,
		     a->proto ? " of this family" : "");
	k->packet->code = (uint8_t)a->code.value;
}

static void check_ports(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct diag_at at = a->sport.given ? a->sport.at : a->dport.at;
	uint8_t proto = k->packet->proto;
	bool ports = proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_SCTP;

	if ((a->sport.given || a->dport.given) && (!ports || a->type.given))
		fail(k, at, NULL, "this protocol has no ports");
	else if ((a->sport.given || a->dport.given) && a->fragment)
		fail(k, at, NULL, "a later fragment has no ports");
	k->packet->sport = (uint16_t)a->sport.value;
	k->packet->dport = (uint16_t)a->dport.value;
}

static void check_flags(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct value v = check_value(k->c, a->at);
	const struct ast_list none = {0};
	uint8_t mask;

	k->packet->flags = FLAG_SYN;
	if (!a->flags.given)
		return;
	k->packet->flags = 0;
	if (k->packet->proto != PROTO_TCP)
		fail(k, a->flags.at, NULL, "'flags' is of tcp");
	if (value_flags(&v, &a->flags, &none, &k->packet->flags, &mask) < 0)
		k->ok = false;
}

static void check_packet(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct resolved_packet *p = k->packet;

	check_on(k);
	p->vlan = (uint16_t)a->vlan.value;
	p->length = a->length.value;
	p->over = a->over;
	if (a->ethertype) {
		check_frame(k);
		return;
	}
	p->ip = true;
	p->ttl = (uint8_t)a->ttl.value;
	p->fragment = a->fragment;
	p->established = a->established;
	check_proto(k);
	check_type(k);
	check_ports(k);
	check_flags(k);
	if (a->established && p->proto != PROTO_TCP && p->proto != PROTO_UDP)
		fail(k, a->at, NULL, "'established' is of tcp and udp");
	if (!check_addresses(k->c, &a->from, SIDE_FROM) || !check_addresses(k->c, &a->to, SIDE_TO))
		k->ok = false;
}

void check_expects(struct checker *c)
{
	size_t n = c->ast->expects.n;

	c->r->n_expects = n;
	c->r->expects = arena_zalloc(&c->r->memory, n, sizeof(*c->r->expects));
	for (size_t i = 0; i < n; i++) {
		struct resolved_packet *packet = arena_new(&c->r->memory, struct resolved_packet);
		struct expect_check k = {
			.c = c,
			.ast = &c->ast->expects.at[i],
			.ret = &c->r->expects[i],
			.packet = packet,
			.ok = true,
		};

		k.ret->at = k.ast->at;
		k.ret->place = check_place(c, k.ast->at, k.ast->line);
		k.ret->packets = packet;
		k.ret->n_packets = 1;
		check_target(&k);
		check_via(&k);
		check_packet(&k);
		k.ast->broken = !k.ok;
	}
}
