// SPDX-License-Identifier: GPL-2.0-only
// Reads one rule: action, fields, conditions and modifiers in any order.
#include <string.h>

#include "names.h"
#include "parse.h"

/* A rule, and values that are resolved after all its fields are read. */
struct draft {
	struct rule *rule;
	unsigned int line;
	struct list sport;
	struct list dport;
	struct list types;
	bool type_given;
	bool connections; /* "over N connections" */
};

static bool once(struct parser *parser, const struct draft *draft, bool given, const char *what)
{
	if (given)
		return parse_fail(parser, draft->line, "'%s' twice in a rule", what);
	return true;
}

static bool take_ports(struct parser *parser, struct draft *draft, bool source)
{
	struct ports *ports = source ? &draft->rule->sport : &draft->rule->dport;
	struct list *list = source ? &draft->sport : &draft->dport;

	if (!once(parser, draft, ports->given, "port"))
		return false;
	ports->given = true;
	return parse_list(parser, list);
}

static bool take_direction(struct parser *parser, struct draft *draft, bool source)
{
	struct direction *direction = source ? &draft->rule->from : &draft->rule->to;
	struct list list;
	bool bare = parse_is(parser, "port");

	if (!once(parser, draft, direction->given, source ? "from" : "to"))
		return false;
	if (!bare && (!parse_list(parser, &list) || !list_addresses(parser, &list, direction)))
		return false;
	if (!parse_accept(parser, "port"))
		return true;
	return take_ports(parser, draft, source);
}

static bool take_from(struct parser *parser, struct draft *draft)
{
	return take_direction(parser, draft, true);
}

static bool take_to(struct parser *parser, struct draft *draft)
{
	return take_direction(parser, draft, false);
}

static bool take_bare_port(struct parser *parser, struct draft *draft)
{
	if (draft->rule->from.given || draft->rule->to.given || draft->rule->sport.given)
		return parse_fail(parser, draft->line, "port after from or to");
	return take_ports(parser, draft, false);
}

static bool take_field(struct parser *parser, struct draft *draft, enum number_kind kind,
		       struct field *field, const char *what)
{
	return once(parser, draft, field->given, what) && parse_field(parser, kind, field);
}

static bool take_proto(struct parser *parser, struct draft *draft)
{
	return take_field(parser, draft, NUMBER_PROTO, &draft->rule->proto, "proto");
}

static bool take_vlan(struct parser *parser, struct draft *draft)
{
	return take_field(parser, draft, NUMBER_VLAN, &draft->rule->vlan, "vlan");
}

static bool take_ethertype(struct parser *parser, struct draft *draft)
{
	return take_field(parser, draft, NUMBER_ETHERTYPE, &draft->rule->ethertype, "ethertype");
}

static bool take_dscp(struct parser *parser, struct draft *draft)
{
	return take_field(parser, draft, NUMBER_DSCP, &draft->rule->dscp, "dscp");
}

static bool take_type(struct parser *parser, struct draft *draft)
{
	if (!once(parser, draft, draft->type_given, "type"))
		return false;
	draft->type_given = true;
	if (!parse_list(parser, &draft->types))
		return false;
	if (!parse_accept(parser, "code"))
		return true;
	if (draft->types.items.len != 1 || draft->types.negated)
		return parse_fail(parser, draft->line, "code needs one type");
	return parse_field(parser, NUMBER_CODE, &draft->rule->code);
}

static bool take_flags(struct parser *parser, struct draft *draft)
{
	return once(parser, draft, draft->rule->flags_given, "flags") &&
	       parse_flags(parser, draft->rule);
}

static bool take_on(struct parser *parser, struct draft *draft)
{
	struct list list;

	return once(parser, draft, draft->rule->on.given, "on") && parse_list(parser, &list) &&
	       list_ifaces(parser, &list, &draft->rule->on);
}

static bool take_mac(struct parser *parser, struct draft *draft)
{
	struct list list;

	return once(parser, draft, draft->rule->mac.given, "mac") && parse_list(parser, &list) &&
	       list_macs(parser, &list, &draft->rule->mac);
}

static bool take_fragment(struct parser *parser, struct draft *draft)
{
	bool given = draft->rule->fragment;

	draft->rule->fragment = true;
	return once(parser, draft, given, "fragment");
}

static bool take_per(struct parser *parser, struct draft *draft)
{
	if (parse_accept(parser, "source"))
		return !parse_accept(parser, "and") || parse_accept(parser, "port") ||
		       parse_fail(parser, draft->line, "per source and what");
	if (parse_accept(parser, "destination") || parse_accept(parser, "rule"))
		return true;
	return parse_fail(parser, draft->line, "per what");
}

/* "N connections" is about the first packet of a TCP connection. */
static bool take_connections(struct parser *parser, struct draft *draft)
{
	draft->connections = true;
	return parse_count(parser) &&
	       (parse_accept(parser, "connections") || parse_accept(parser, "connection"));
}

static bool is_connections(const struct parser *parser)
{
	const struct token *next = parse_peek(parser) + 1;

	return parse_peek(parser)->kind == TOKEN_WORD && next->kind == TOKEN_WORD &&
	       !strncmp(next->text, "connection", strlen("connection"));
}

/* The rate itself does not matter: the packet has a flag whether it is exceeded. */
static bool take_rate(struct parser *parser, struct draft *draft, bool *given)
{
	unsigned int mask[2];

	if (!once(parser, draft, *given, "over or under"))
		return false;
	*given = true;
	if (is_connections(parser) ? !take_connections(parser, draft) : !parse_rate(parser))
		return false;
	for (;;) {
		bool done;

		if (parse_accept(parser, "burst") || parse_accept(parser, "max"))
			done = parse_count(parser);
		else if (parse_accept(parser, "mask"))
			done = parse_mask(parser, mask);
		else if (parse_accept(parser, "per"))
			done = take_per(parser, draft);
		else
			return true;
		if (!done)
			return false;
	}
}

static bool take_over(struct parser *parser, struct draft *draft)
{
	return take_rate(parser, draft, &draft->rule->over);
}

static bool take_under(struct parser *parser, struct draft *draft)
{
	return take_rate(parser, draft, &draft->rule->under);
}

static bool take_length(struct parser *parser, struct draft *draft)
{
	return once(parser, draft, draft->rule->length.given, "length") &&
	       parse_span(parser, UINT32_MAX, &draft->rule->length);
}

static bool take_ttl(struct parser *parser, struct draft *draft)
{
	return once(parser, draft, draft->rule->ttl.given, "ttl") &&
	       parse_span(parser, 255, &draft->rule->ttl);
}

static bool take_probability(struct parser *parser, struct draft *draft)
{
	bool given = draft->rule->probability;

	draft->rule->probability = true;
	return once(parser, draft, given, "probability") && parse_percent(parser);
}

static bool take_established(struct parser *parser, struct draft *draft)
{
	bool given = draft->rule->established;

	draft->rule->established = true;
	return once(parser, draft, given || draft->rule->untracked, "established");
}

static bool take_unroutable(struct parser *parser, struct draft *draft)
{
	bool given = draft->rule->unroutable;

	draft->rule->unroutable = true;
	return once(parser, draft, given, "unroutable");
}

static bool take_not(struct parser *parser, struct draft *draft)
{
	bool given = draft->rule->untracked;

	if (!parse_accept(parser, "established"))
		return parse_fail(parser, draft->line, "not what");
	draft->rule->untracked = true;
	return once(parser, draft, given || draft->rule->established, "established");
}

static bool take_log(struct parser *parser, struct draft *draft)
{
	const struct token *token = parse_peek(parser);
	uint64_t snap;

	(void)draft;
	if (token->kind == TOKEN_WORD && token->text[0] >= '0' && token->text[0] <= '9' &&
	    !parse_rate(parser))
		return false;
	return !parse_accept(parser, "snap") || parse_number(parser, 65535, &snap);
}

static bool take_add(struct parser *parser, struct draft *draft)
{
	struct add add = {.destination = parse_is(parser, "destination")};
	const struct token *token;

	if (!parse_accept(parser, "destination") && !parse_accept(parser, "source"))
		return parse_fail(parser, draft->line, "add what");
	token = parse_take(parser);
	if (token->kind == TOKEN_SET)
		add.set = policy_set(parser->policy, token->text);
	if (!add.set || !add.set->dynamic)
		return parse_fail(parser, token->line, "'%s' is no dynamic set", token->text);
	*vec_add(parser->pool, &draft->rule->adds) = add;
	return !parse_accept(parser, "for") || parse_time(parser);
}

static bool take_part(struct parser *parser, struct draft *draft)
{
	static const struct {
		const char *keyword;
		bool (*take)(struct parser *parser, struct draft *draft);
	} parts[] = {
		{"from", take_from},
		{"to", take_to},
		{"port", take_bare_port},
		{"proto", take_proto},
		{"type", take_type},
		{"flags", take_flags},
		{"vlan", take_vlan},
		{"on", take_on},
		{"mac", take_mac},
		{"ethertype", take_ethertype},
		{"fragment", take_fragment},
		{"over", take_over},
		{"under", take_under},
		{"length", take_length},
		{"ttl", take_ttl},
		{"dscp", take_dscp},
		{"probability", take_probability},
		{"established", take_established},
		{"unroutable", take_unroutable},
		{"not", take_not},
		{"log", take_log},
		{"add", take_add},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parse_accept(parser, parts[i].keyword))
			return parts[i].take(parser, draft);
	}
	return parse_fail(parser, parse_peek(parser)->line, "'%s' in a rule",
			  parse_peek(parser)->text);
}

/* The protocols whose ports the rule may name. */
static bool port_protos(struct parser *parser, const struct draft *draft, unsigned int *ret_protos)
{
	static const uint8_t numbers[PORTS_COUNT] = {PROTO_TCP, PROTO_UDP, PROTO_SCTP};
	const struct rule *rule = draft->rule;
	size_t known = 0;

	*ret_protos = 0;
	for (int i = 0; i < PORTS_COUNT; i++) {
		if (rule->flags_given && numbers[i] != PROTO_TCP)
			continue;
		if (!rule->proto.given || numbers_hold(&rule->proto.numbers, numbers[i]))
			*ret_protos |= 1U << i;
	}
	for (size_t i = 0; i < rule->proto.numbers.ranges.len; i++) {
		const struct number_range *range = &rule->proto.numbers.ranges.v[i];

		for (int j = 0; j < PORTS_COUNT; j++)
			known += (*ret_protos & 1U << j) && range->lo == numbers[j];
	}
	if (rule->proto.given &&
	    (rule->proto.numbers.negated || known != rule->proto.numbers.ranges.len))
		return parse_fail(parser, draft->line, "a protocol without these ports or flags");
	return true;
}

/* A SYN opens the connection. */
static bool finish_connections(struct parser *parser, const struct draft *draft)
{
	const uint8_t mask = FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK;
	struct rule *rule = draft->rule;

	if (!draft->connections)
		return true;
	if (rule->flags_given && (rule->flags_set != FLAG_SYN || rule->flags_mask != mask))
		return parse_fail(parser, draft->line, "connections with other flags than syn");
	rule->flags_given = true;
	rule->flags_set = FLAG_SYN;
	rule->flags_mask = mask;
	return true;
}

static bool finish_ports(struct parser *parser, const struct draft *draft)
{
	struct rule *rule = draft->rule;
	unsigned int protos;

	if (!rule->sport.given && !rule->dport.given && !rule->flags_given)
		return true;
	if (rule->fragment || draft->type_given)
		return parse_fail(parser, draft->line, "ports or flags with fragment or type");
	return port_protos(parser, draft, &protos) &&
	       (!rule->sport.given || list_ports(parser, &draft->sport, protos, &rule->sport)) &&
	       (!rule->dport.given || list_ports(parser, &draft->dport, protos, &rule->dport));
}

static bool finish_types(struct parser *parser, const struct draft *draft)
{
	const struct field *proto = &draft->rule->proto;

	if (!draft->type_given)
		return true;
	if (draft->rule->fragment)
		return parse_fail(parser, draft->line, "type with fragment");
	for (size_t i = 0; i < proto->numbers.ranges.len; i++) {
		uint64_t number = proto->numbers.ranges.v[i].lo;

		if (proto->numbers.negated || (number != PROTO_ICMP && number != PROTO_ICMP6))
			return parse_fail(parser, draft->line, "a protocol without types");
	}
	return list_types(parser, &draft->types, proto, &draft->rule->type);
}

/* Fields that are allowed with `ethertype`. */
static bool finish_ethertype(struct parser *parser, const struct draft *draft)
{
	const struct rule *rule = draft->rule;

	if (!rule->ethertype.given)
		return true;
	if (rule->from.given || rule->to.given || rule->sport.given || rule->dport.given ||
	    rule->proto.given || draft->type_given || rule->flags_given || rule->fragment ||
	    rule->ttl.given || rule->dscp.given || rule->established || rule->untracked ||
	    rule->unroutable || rule->adds.len || rule->action == ACTION_REJECT)
		return parse_fail(parser, draft->line, "ethertype does not go with this");
	return true;
}

static bool take_action(struct parser *parser, struct rule *rule)
{
	static const char *const words[] = {
		[ACTION_PASS] = "pass",     [ACTION_DROP] = "drop",
		[ACTION_REJECT] = "reject", [ACTION_REDIRECT] = "redirect",
		[ACTION_COUNT] = "count",
	};

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!parse_accept(parser, words[i]))
			continue;
		rule->action = (enum action)i;
		return i != ACTION_REDIRECT || parse_word(parser, &rule->redirect);
	}
	return parse_fail(parser, parse_peek(parser)->line, "'%s'", parse_peek(parser)->text);
}

bool parse_rule(struct parser *parser)
{
	struct rule *rule = pool_alloc(parser->pool, sizeof(*rule));
	struct draft draft = {.rule = rule, .line = parse_peek(parser)->line};

	rule->line = draft.line;
	if (parse_peek(parser)->kind == TOKEN_STRING)
		rule->name = parse_take(parser)->text;
	rule->always = parse_accept(parser, "always");
	if (!take_action(parser, rule))
		return false;
	while (!parse_at_end(parser)) {
		if (!take_part(parser, &draft))
			return false;
	}
	*vec_add(parser->pool, &parser->policy->rules) = rule;
	rule->number = (unsigned int)parser->policy->rules.len;
	return finish_connections(parser, &draft) && finish_ports(parser, &draft) &&
	       finish_types(parser, &draft) && finish_ethertype(parser, &draft);
}
