// SPDX-License-Identifier: GPL-2.0-only
// Reads lists, expands defines in them, and converts them to numbers, ports, types and addresses.
#include <string.h>

#include "names.h"
#include "parse.h"

static struct define *find_define(struct parser *parser, const char *name)
{
	for (size_t i = 0; i < parser->defines.len; i++) {
		if (!strcmp(parser->defines.v[i].name, name))
			return &parser->defines.v[i];
	}
	return NULL;
}

/* The list of a define, from its own place in the tokens. */
static bool define_list(struct parser *parser, const struct token *token, struct list *ret_list)
{
	struct define *define = find_define(parser, token->text);
	size_t at = parser->at;
	bool done;

	if (!define)
		return parse_fail(parser, token->line, "unknown define '$%s'", token->text);
	if (define->expanding)
		return parse_fail(parser, token->line, "'$%s' contains itself", token->text);
	define->expanding = true;
	parser->at = define->at;
	done = parse_list(parser, ret_list);
	define->expanding = false;
	parser->at = at;
	return done;
}

/* Reading 4 */
bool list_put_define(struct parser *parser, const struct token *token, bool negative, bool alone,
		     struct list *list)
{
	struct list inner = {0};

	if (!define_list(parser, token, &inner))
		return false;
	if (inner.negated && (negative || !alone || list->negated))
		return parse_fail(parser, token->line, "'$%s' begins with not and is not alone",
				  token->text);
	list->negated |= inner.negated;
	for (size_t i = 0; i < inner.items.len; i++) {
		struct item *item = vec_add(parser->pool, &list->items);

		*item = inner.items.v[i];
		if (negative && item->negative)
			return parse_fail(parser, token->line, "an exception from an exception");
		item->negative |= negative;
	}
	return true;
}

static bool put_item(struct parser *parser, bool first, struct list *list)
{
	bool negative = parse_accept(parser, "not");
	const struct token *token = parse_take(parser);
	bool alone = first && parse_peek(parser)->kind != TOKEN_COMMA;

	if (token->kind == TOKEN_DEFINE)
		return list_put_define(parser, token, negative, alone, list);
	if (token->kind != TOKEN_WORD && token->kind != TOKEN_SET)
		return parse_fail(parser, token->line, "'%s' in a list", token->text);
	*vec_add(parser->pool, &list->items) = (struct item){
		.is_set = token->kind == TOKEN_SET,
		.negative = negative,
		.text = token->text,
		.line = token->line,
	};
	return true;
}

bool parse_list(struct parser *parser, struct list *ret_list)
{
	unsigned int line = parse_peek(parser)->line;
	bool first = true;

	memset(ret_list, 0, sizeof(*ret_list));
	ret_list->negated = parse_accept(parser, "not");
	do {
		if (!put_item(parser, first, ret_list))
			return false;
		first = false;
	} while (parse_accept_kind(parser, TOKEN_COMMA));
	for (size_t i = 0; ret_list->negated && i < ret_list->items.len; i++) {
		if (ret_list->items.v[i].negative)
			return parse_fail(parser, line, "a negated list with an exception");
	}
	return true;
}

static bool number_word(enum number_kind kind, const char *word, uint16_t ret[2], int *ret_count)
{
	uint64_t number = 0;
	int value = -1;

	*ret_count = 1;
	if (kind == NUMBER_ETHERTYPE) {
		*ret_count = name_ethertype(word, ret);
		return *ret_count > 0;
	}
	if (kind == NUMBER_PROTO)
		value = name_proto(word);
	else if (kind == NUMBER_DSCP)
		value = name_dscp(word);
	else if (kind == NUMBER_VLAN && !strcmp(word, "none"))
		value = 0;
	else if (number_parse(word, strlen(word), kind == NUMBER_VLAN ? 4095 : 255, &number))
		value = (int)number;
	ret[0] = (uint16_t)value;
	return value >= 0;
}

static bool put_number(struct parser *parser, enum number_kind kind, const struct item *item,
		       struct numbers *numbers)
{
	uint16_t values[2];
	int count;

	if (kind == NUMBER_ETHERTYPE && !strcmp(item->text, "any")) {
		numbers_add(parser->pool, numbers, 0, 0xffff, item->negative);
		return true;
	}
	if (item->is_set || !number_word(kind, item->text, values, &count))
		return parse_fail(parser, item->line, "'%s'", item->text);
	for (int i = 0; i < count; i++)
		numbers_add(parser->pool, numbers, values[i], values[i], item->negative);
	return true;
}

bool parse_field(struct parser *parser, enum number_kind kind, struct field *ret_field)
{
	struct list list;

	if (!parse_list(parser, &list))
		return false;
	ret_field->given = true;
	ret_field->numbers.negated = list.negated;
	for (size_t i = 0; i < list.items.len; i++) {
		if (!put_number(parser, kind, &list.items.v[i], &ret_field->numbers))
			return false;
	}
	return true;
}

/* N or N-M, the same in every protocol. */
static bool put_port_numbers(struct parser *parser, const struct item *item, struct ports *ports)
{
	const char *dash = strchr(item->text, '-');
	size_t digits = dash ? (size_t)(dash - item->text) : strlen(item->text);
	uint64_t lo, hi;

	if (!number_parse(item->text, digits, 65535, &lo))
		return false;
	hi = lo;
	if (dash && !number_parse(dash + 1, strlen(dash + 1), 65535, &hi))
		return false;
	if (lo > hi)
		return false;
	for (int i = 0; i < PORTS_COUNT; i++)
		numbers_add(parser->pool, &ports->numbers[i], (uint32_t)lo, (uint32_t)hi,
			    item->negative);
	return true;
}

/* A service name must be known in each of the rule's protocols. */
static bool put_port_name(struct parser *parser, const struct item *item, unsigned int protos,
			  struct ports *ports)
{
	static const char *const names[PORTS_COUNT] = {"tcp", "udp", "sctp"};

	for (int i = 0; i < PORTS_COUNT; i++) {
		int port = name_service(item->text, names[i]);

		if (!(protos & 1U << i))
			continue;
		if (port < 0)
			return parse_fail(parser, item->line, "port '%s' in %s", item->text,
					  names[i]);
		numbers_add(parser->pool, &ports->numbers[i], (uint32_t)port, (uint32_t)port,
			    item->negative);
	}
	return true;
}

/* The elements of a set of ports, from its own place in the tokens. */
static bool take_elements(struct parser *parser, struct list *list)
{
	while (!parse_accept_kind(parser, TOKEN_CLOSE)) {
		const struct token *token;
		bool negative;

		if (parse_accept_kind(parser, TOKEN_COMMA) ||
		    parse_accept_kind(parser, TOKEN_NEWLINE))
			continue;
		negative = parse_accept(parser, "not");
		token = parse_take(parser);
		if (token->kind == TOKEN_DEFINE) {
			if (!list_put_define(parser, token, negative, false, list))
				return false;
			continue;
		}
		if (token->kind != TOKEN_WORD)
			return parse_fail(parser, token->line, "'%s' in a set", token->text);
		*vec_add(parser->pool, &list->items) = (struct item){
			.negative = negative, .text = token->text, .line = token->line};
	}
	return true;
}

/* A set of ports counts as the ports that it holds: its exceptions are its own. */
static bool put_port_set(struct parser *parser, const struct item *item, unsigned int protos,
			 struct ports *ports)
{
	const struct set *set = policy_set(parser->policy, item->text);
	struct ports held = {0};
	struct list list = {0};
	size_t at = parser->at;
	bool done;

	if (!set || !set->ports)
		return parse_fail(parser, item->line, "'@%s' as a port", item->text);
	parser->at = set->at;
	done = take_elements(parser, &list) && list_ports(parser, &list, protos, &held);
	parser->at = at;
	for (int i = 0; done && i < PORTS_COUNT; i++)
		for (uint32_t port = 0; port < 65536; port++)
			if (numbers_hold(&held.numbers[i], port))
				numbers_add(parser->pool, &ports->numbers[i], port, port,
					    item->negative);
	return done;
}

bool list_ports(struct parser *parser, const struct list *list, unsigned int protos,
		struct ports *ret_ports)
{
	ret_ports->given = true;
	for (int i = 0; i < PORTS_COUNT; i++)
		ret_ports->numbers[i].negated = list->negated;
	for (size_t i = 0; i < list->items.len; i++) {
		const struct item *item = &list->items.v[i];

		if (item->is_set) {
			if (!put_port_set(parser, item, protos, ret_ports))
				return false;
			continue;
		}
		if (put_port_numbers(parser, item, ret_ports))
			continue;
		if (!put_port_name(parser, item, protos, ret_ports))
			return false;
	}
	return true;
}

static bool mac_word(const char *word, size_t len, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";

	*ret = 0;
	for (size_t i = 0; len == 17 && i < len; i++) {
		const char *digit = word[i] ? strchr(digits, word[i]) : NULL;

		if (i % 3 == 2 && word[i] == ':')
			continue;
		if (i % 3 == 2 || !digit)
			return false;
		*ret = *ret * 16 + (uint64_t)(digit - digits) % 16;
	}
	return len == 17;
}

static bool put_mac_word(struct parser *parser, const struct item *item, struct numbers *numbers)
{
	const char *dash = strchr(item->text, '-');
	size_t len = dash ? (size_t)(dash - item->text) : strlen(item->text);
	uint64_t lo, hi;

	if (!mac_word(item->text, len, &lo))
		return parse_fail(parser, item->line, "'%s' as a MAC address", item->text);
	hi = lo;
	if (dash && (!mac_word(dash + 1, strlen(dash + 1), &hi) || hi < lo))
		return parse_fail(parser, item->line, "'%s' as a MAC address", item->text);
	numbers_add(parser->pool, numbers, lo, hi, item->negative);
	return true;
}

/* The numbers lo … hi without the exceptions of `held` from number `at` on. */
static void put_rest(struct parser *parser, const struct numbers *held, size_t at, uint64_t lo,
		     uint64_t hi, bool negative, struct numbers *numbers)
{
	for (; at < held->ranges.len; at++) {
		const struct number_range *out = &held->ranges.v[at];

		if (!out->negative || out->hi < lo || out->lo > hi)
			continue;
		if (out->lo > lo)
			put_rest(parser, held, at + 1, lo, out->lo - 1, negative, numbers);
		if (out->hi >= hi)
			return;
		lo = out->hi + 1;
	}
	numbers_add(parser->pool, numbers, lo, hi, negative);
}

static bool put_mac_set(struct parser *parser, const struct item *item, struct numbers *numbers)
{
	const struct set *set = policy_set(parser->policy, item->text);
	struct numbers held = {0};
	struct list list = {0};
	size_t at = parser->at;
	bool done;

	if (!set || !set->macs)
		return parse_fail(parser, item->line, "'@%s' as a MAC address", item->text);
	parser->at = set->at;
	done = take_elements(parser, &list);
	parser->at = at;
	for (size_t i = 0; done && i < list.items.len; i++)
		done = put_mac_word(parser, &list.items.v[i], &held);
	for (size_t i = 0; done && i < held.ranges.len; i++) {
		const struct number_range *range = &held.ranges.v[i];

		if (!range->negative)
			put_rest(parser, &held, 0, range->lo, range->hi, item->negative, numbers);
	}
	return done;
}

bool list_macs(struct parser *parser, const struct list *list, struct field *ret_field)
{
	ret_field->given = true;
	ret_field->numbers.negated = list->negated;
	for (size_t i = 0; i < list->items.len; i++) {
		const struct item *item = &list->items.v[i];

		if (item->is_set ? !put_mac_set(parser, item, &ret_field->numbers)
				 : !put_mac_word(parser, item, &ret_field->numbers))
			return false;
	}
	return true;
}

/* Adds a type in one family, unless the rule's protocols exclude the family. */
static void put_type(struct parser *parser, struct types *types, int family, int number,
		     bool negative)
{
	if (number < 0)
		return;
	types->known[family] = true;
	numbers_add(parser->pool, &types->numbers[family], (uint32_t)number, (uint32_t)number,
		    negative);
}

static bool put_type_item(struct parser *parser, const struct item *item, const bool allowed[2],
			  bool proto_given, struct types *types)
{
	const struct icmp_name *name = name_icmp(item->text);
	uint64_t number;

	if (name && !item->is_set) {
		if (proto_given && ((allowed[0] && name->v4 < 0) || (allowed[1] && name->v6 < 0)))
			return parse_fail(parser, item->line, "type '%s' in this protocol",
					  item->text);
		put_type(parser, types, 0, allowed[0] ? name->v4 : -1, item->negative);
		put_type(parser, types, 1, allowed[1] ? name->v6 : -1, item->negative);
		return true;
	}
	if (item->is_set || !number_parse(item->text, strlen(item->text), 255, &number))
		return parse_fail(parser, item->line, "type '%s'", item->text);
	if (!proto_given || allowed[0] == allowed[1])
		return parse_fail(parser, item->line, "a type's number needs one protocol");
	put_type(parser, types, allowed[1], (int)number, item->negative);
	return true;
}

/* weir-policy(5), Fields: `type` and `proto`. */
bool list_types(struct parser *parser, const struct list *list, const struct field *proto,
		struct types *ret_types)
{
	bool allowed[2] = {
		!proto->given || numbers_hold(&proto->numbers, PROTO_ICMP),
		!proto->given || numbers_hold(&proto->numbers, PROTO_ICMP6),
	};

	ret_types->given = true;
	ret_types->numbers[0].negated = list->negated;
	ret_types->numbers[1].negated = list->negated;
	for (size_t i = 0; i < list->items.len; i++) {
		if (!put_type_item(parser, &list->items.v[i], allowed, proto->given, ret_types))
			return false;
	}
	return true;
}

bool list_ifaces(struct parser *parser, const struct list *list, struct ifaces *ret_ifaces)
{
	ret_ifaces->given = true;
	ret_ifaces->negated = list->negated;
	for (size_t i = 0; i < list->items.len; i++) {
		const struct item *item = &list->items.v[i];

		if (item->is_set || strchr(item->text, '*'))
			return parse_fail(parser, item->line, "interface '%s'", item->text);
		*vec_add(parser->pool, &ret_ifaces->items) =
			(struct iface_item){.name = item->text, .negative = item->negative};
	}
	return true;
}

static bool take_pair(struct parser *parser, struct direction *direction)
{
	const struct token *token = parse_take(parser);
	struct pair *pair = vec_add(parser->pool, &direction->pairs);
	const char *word, *dash;

	if (token->kind != TOKEN_WORD || !addr_parse(token->text, &pair->addr) ||
	    !parse_accept(parser, "port") || !parse_word(parser, &word))
		return parse_fail(parser, token->line, "a pair");
	dash = strchr(word, '-');
	if (!number_parse(word, dash ? (size_t)(dash - word) : strlen(word), 65535, &pair->lo))
		return parse_fail(parser, token->line, "the port of a pair");
	pair->hi = pair->lo;
	return !dash || number_parse(dash + 1, strlen(dash + 1), 65535, &pair->hi) ||
	       parse_fail(parser, token->line, "the ports of a pair");
}

/* A set of pairs is the only item of its list. *ret_is: the list is one. */
static bool list_pairs(struct parser *parser, const struct list *list, struct direction *direction,
		       bool *ret_is)
{
	const struct item *item = &list->items.v[0];
	const struct set *set =
		item->is_set && !item->negative ? policy_set(parser->policy, item->text) : NULL;
	size_t at = parser->at;

	*ret_is = list->items.len == 1 && set && set->pairs;
	if (!*ret_is)
		return true;
	direction->of_pairs = true;
	direction->no_pair = list->negated;
	parser->at = set->at;
	while (!parse_accept_kind(parser, TOKEN_CLOSE)) {
		if (parse_accept_kind(parser, TOKEN_COMMA) ||
		    parse_accept_kind(parser, TOKEN_NEWLINE))
			continue;
		if (!take_pair(parser, direction))
			return false;
	}
	parser->at = at;
	return true;
}

/* A dynamic set is the only item of its list. */
static bool list_is_dynamic(struct parser *parser, const struct list *list,
			    struct direction *direction)
{
	const struct item *item = &list->items.v[0];

	if (list->items.len != 1 || !item->is_set || list->negated || item->negative)
		return false;
	direction->dynamic = policy_set(parser->policy, item->text);
	if (direction->dynamic && !direction->dynamic->dynamic)
		direction->dynamic = NULL;
	return direction->dynamic != NULL;
}

bool list_addresses(struct parser *parser, const struct list *list, struct direction *ret_direction)
{
	struct addresses *addresses;

	bool pairs;

	ret_direction->given = true;
	if (!list_pairs(parser, list, ret_direction, &pairs))
		return false;
	if (pairs)
		return true;
	if (list_is_dynamic(parser, list, ret_direction))
		return true;
	addresses = pool_alloc(parser->pool, sizeof(*addresses));
	addresses->negated = list->negated;
	for (size_t i = 0; i < list->items.len; i++) {
		const struct item *item = &list->items.v[i];
		bool done = item->is_set ? set_add_ref(parser, item, addresses)
					 : set_add_word(parser, item->text, item->line,
							item->negative, addresses);

		if (!done)
			return false;
	}
	*vec_add(parser->pool, &parser->lists) = addresses;
	ret_direction->list = addresses;
	return true;
}
