// SPDX-License-Identifier: GPL-2.0-only
// Parses expectations: a verdict, and the packet that must get it.
#include <stdio.h>
#include <string.h>

#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

static bool parse_verdict(struct parser *p, struct ast_expect *e)
{
	const struct token *target;
	bool name = parse_is(p, TOKEN_WORD) && !keyword_is(p->at->text);

	e->verdict = EXPECT_SERVICE;
	if (name) {
		if (!parse_name(p, "a service", &target))
			return false;
	} else {
		if (!parse_choice(p, &choice_expects, "a service", &e->verdict))
			return false;
		if (e->verdict != EXPECT_REDIRECT)
			return true;
		if (!parse_ifname(p, false, &target))
			return false;
	}
	e->target = target->text;
	e->target_at = target->at;
	return true;
}

// A packet does not begin with this word, so names may have it.
static void parse_answer(struct parser *p, struct ast_expect *e)
{
	e->answer_at = p->at->at;
	e->answer = e->verdict == EXPECT_SERVICE && parse_accept_word(p, "answer");
}

static bool parse_via(struct parser *p, struct ast_expect *e)
{
	e->via_at = p->at->at;
	if (parse_is(p, TOKEN_STRING)) {
		e->via = VIA_RULE;
		e->rule = parse_next(p)->text;
		return true;
	}
	return parse_choice(p, &choice_vias, "a rule's name", &e->via);
}

// ---- packet -------------------------------------------------------------------------------------

static bool parse_value(struct parser *p, const char *what, uint32_t max, struct ast_number *ret)
{
	ret->at = p->at->at;
	ret->given = true;
	return parse_number(p, what, 0, max, &ret->value);
}

static bool parse_end(struct parser *p, const char *word, struct ast_list *list,
		      struct ast_number *port)
{
	char what[16];

	if (!parse_accept_word(p, word)) {
		snprintf(what, sizeof(what), "'%s'", word);
		return parse_expected(p, what, "a packet is: tcp from A port P to B port Q");
	}
	if (!parse_list(p, &domain_address, list))
		return false;
	return !parse_accept_word(p, "port") || parse_value(p, "a port", 65535, port);
}

static bool parse_addresses(struct parser *p, struct ast_packet *packet)
{
	if (!parse_is_word(p, "from") && parse_is(p, TOKEN_WORD) &&
	    (!keyword_is(p->at->text) || names_has(NAMES_PROTOS, p->at->text))) {
		packet->proto_at = p->at->at;
		packet->proto = parse_next(p)->text;
	}
	return parse_end(p, "from", &packet->from, &packet->sport) &&
	       parse_end(p, "to", &packet->to, &packet->dport);
}

static bool parse_frame(struct parser *p, struct ast_packet *packet)
{
	if (!parse_is(p, TOKEN_WORD))
		return parse_expected(p, "an ethertype", NULL);
	packet->ethertype_at = p->at->at;
	packet->ethertype = parse_next(p)->text;
	return true;
}

static bool parse_packet_type(struct parser *p, struct ast_packet *packet)
{
	struct ast_item item = {.kind = AST_WORD, .line = p->at->line, .at = p->at->at};

	if (!parse_is(p, TOKEN_WORD) ||
	    (keyword_is(p->at->text) && !names_has(NAMES_ICMP, p->at->text)))
		return parse_expected(p, "an ICMP type", NULL);
	item.word = parse_next(p)->text;
	packet->type.given = true;
	packet->type.at = item.at;
	vec_push(&packet->type.items, item);
	return !parse_accept_word(p, "code") || parse_value(p, "an ICMP code", 255, &packet->code);
}

static bool parse_packet_mac(struct parser *p, struct ast_packet *packet)
{
	const char *word = p->at->text;

	if (!parse_is(p, TOKEN_WORD) || mac_parse(word, strlen(word), &packet->mac) < 0)
		return parse_expected(p, "a MAC address", "as 02:00:5e:00:53:01");
	packet->mac_given = true;
	parse_next(p);
	return true;
}

static bool parse_packet_on(struct parser *p, struct ast_packet *packet)
{
	const struct token *name;

	if (!parse_ifname(p, true, &name))
		return false;
	packet->on = name->text;
	packet->on_at = name->at;
	return true;
}

enum packet_word {
	FLAGS,
	TYPE,
	MAC,
	VLAN,
	LENGTH,
	TTL,
	ON,
	FRAGMENT,
	OVER,
	ESTABLISHED,
	UNROUTABLE,
	PACKET_WORDS
};

static bool parse_packet_value(struct parser *p, struct ast_packet *packet, enum packet_word word)
{
	switch (word) {
	case FLAGS:
		return parse_flags(p, &packet->flags, NULL);
	case TYPE:
		return parse_packet_type(p, packet);
	case MAC:
		return parse_packet_mac(p, packet);
	case VLAN:
		return parse_value(p, "a VLAN number", 4095, &packet->vlan);
	case LENGTH:
		return parse_value(p, "a length", 65575, &packet->length);
	case TTL:
		return parse_value(p, "a TTL", 255, &packet->ttl);
	case ON:
		return parse_packet_on(p, packet);
	case FRAGMENT:
		return packet->fragment = true;
	case OVER:
		return packet->over = true;
	case ESTABLISHED:
		return packet->established = true;
	default:
		return packet->unroutable = true;
	}
}

static bool parse_packet(struct parser *p, struct ast_packet *packet)
{
	static const char *const words[] = {
		[FLAGS] = "flags",
		[TYPE] = "type",
		[MAC] = "mac",
		[VLAN] = "vlan",
		[LENGTH] = "length",
		[TTL] = "ttl",
		[ON] = "on",
		[FRAGMENT] = "fragment",
		[OVER] = "over",
		[ESTABLISHED] = "established",
		[UNROUTABLE] = "unroutable",
	};
	static const struct choice choice = {words, PACKET_WORDS};
	struct diag_at seen[PACKET_WORDS] = {0};
	const struct token *first = p->at;
	bool ok = parse_accept_word(p, "ethertype") ? parse_frame(p, packet)
						    : parse_addresses(p, packet);

	while (ok && !parse_at_end(p)) {
		const struct token *t = p->at;
		uint8_t n;

		ok = parse_choice(p, &choice, NULL, &n) && parse_once(p, &seen[n], t, "packet") &&
		     parse_packet_value(p, packet, n);
	}
	packet->at = parse_span(first->at, p->at[-1].at);
	return ok;
}

static void free_packet(struct ast_packet *packet)
{
	vec_free(&packet->from.items);
	vec_free(&packet->to.items);
	vec_free(&packet->flags.items);
	vec_free(&packet->type.items);
}

bool parse_expect(struct parser *p)
{
	struct ast_expect e = {.at = p->at->at, .line = p->at->line};

	parse_next(p);
	if (!parse_verdict(p, &e)) {
		free_packet(&e.packet);
		return false;
	}
	parse_answer(p, &e);
	if ((parse_accept_word(p, "via") && !parse_via(p, &e)) || !parse_packet(p, &e.packet) ||
	    !parse_room(p, p->ast->expects.n, POLICY_EXPECTS, e.at, "expect lines")) {
		free_packet(&e.packet);
		return false;
	}
	vec_push(&p->ast->expects, e);
	return true;
}
