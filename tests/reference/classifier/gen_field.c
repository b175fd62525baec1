// SPDX-License-Identifier: GPL-2.0-only
// Makes up the lists of numbers a rule may have: ports, protocols, types, tags and the like.
#include <stdio.h>
#include <string.h>

#include "gen.h"
#include "names.h"

#define COUNT(array) ((unsigned int)(sizeof(array) / sizeof((array)[0])))

static void put(struct gen *gen, struct gen_numbers *numbers, struct gen_text *text,
		struct gen_range range, const char *word)
{
	*vec_add(&gen->pool, &numbers->ranges) = range;
	numbers->given = true;
	text_put(text, "%s%s%s", text->bytes.len ? ", " : "", range.negative ? "not " : "", word);
}

static bool has(const struct gen_numbers *numbers, uint32_t lo, uint32_t hi)
{
	for (size_t i = 0; i < numbers->ranges.len; i++) {
		if (numbers->ranges.v[i].lo == lo && numbers->ranges.v[i].hi == hi)
			return true;
	}
	return false;
}

static void put_number(struct gen *gen, struct gen_numbers *numbers, struct gen_text *text,
		       uint32_t value, const char *word)
{
	char digits[16];

	if (has(numbers, value, value))
		return;
	snprintf(digits, sizeof(digits), "%u", value);
	put(gen, numbers, text, (struct gen_range){.lo = value, .hi = value}, word ? word : digits);
}

static void done(struct gen *gen, struct gen_numbers *numbers, struct gen_text *text,
		 unsigned int negated_percent)
{
	numbers->negated = rng_chance(&gen->rng, negated_percent);
	numbers->text =
		pool_printf(&gen->pool, "%s%s", numbers->negated ? "not " : "", text_done(text));
}

static uint32_t random_port(struct gen *gen)
{
	static const uint32_t usual[] = {1,    22,   23,   53,   80,    123,   443,  1023,
					 1024, 5000, 8080, 8443, 32768, 65534, 65535};

	if (rng_chance(&gen->rng, 60))
		return usual[rng_below(&gen->rng, COUNT(usual))];
	return rng_between(&gen->rng, 1, rng_chance(&gen->rng, 50) ? 2000 : 65535);
}

/* The port of a service if it is the same in each of the protocols, else 0. */
static uint32_t service_port(const char *name, unsigned int protos)
{
	static const char *const names[] = {"tcp", "udp", "sctp"};
	int port = 0;

	for (int i = 0; i < 3; i++) {
		int number = protos & 1U << i ? name_service(name, names[i]) : port;

		if (number <= 0 && protos & 1U << i)
			return 0;
		if (port && number != port)
			return 0;
		port = number;
	}
	return (uint32_t)port;
}

static bool put_named_port(struct gen *gen, struct gen_numbers *ports, struct gen_text *text,
			   unsigned int protos)
{
	static const char *const names[] = {"ssh",  "http", "https",  "domain", "ntp",      "smtp",
					    "snmp", "www",  "syslog", "telnet", "ftp-data", "tftp"};
	const char *name = names[rng_below(&gen->rng, COUNT(names))];
	uint32_t port;

	if (protos == 0 || !gen->options.with[GEN_NAMED_PORTS])
		return false;
	port = service_port(name, protos);
	if (port == 0)
		return false;
	put_number(gen, ports, text, port, name);
	return true;
}

static void put_port_range(struct gen *gen, struct gen_numbers *ports, struct gen_text *text)
{
	uint32_t a = random_port(gen), b = random_port(gen);
	char word[32];

	if (rng_chance(&gen->rng, 50))
		b = a + rng_between(&gen->rng, 1, 40);
	b = b > 65535 ? 65535 : b;
	if (a == b || has(ports, a < b ? a : b, a < b ? b : a))
		return;
	snprintf(word, sizeof(word), "%u-%u", a < b ? a : b, a < b ? b : a);
	put(gen, ports, text, (struct gen_range){.lo = a < b ? a : b, .hi = a < b ? b : a}, word);
}

/* An exception inside one range, touching no other item, so that every reading agrees. */
static void put_port_exception(struct gen *gen, struct gen_numbers *ports, struct gen_text *text)
{
	struct gen_range range =
		ports->ranges.v[rng_below(&gen->rng, (unsigned int)ports->ranges.len)];
	char word[32];

	range.lo = rng_between(&gen->rng, range.lo, range.hi);
	range.hi =
		rng_chance(&gen->rng, 50) ? range.lo : rng_between(&gen->rng, range.lo, range.hi);
	range.negative = true;
	for (size_t i = 0; i < ports->ranges.len; i++) {
		const struct gen_range *other = &ports->ranges.v[i];
		bool apart = other->hi < range.lo || other->lo > range.hi;
		bool inside = other->lo <= range.lo && other->hi >= range.hi &&
			      other->hi - other->lo > range.hi - range.lo;

		if (!apart && (!inside || other->negative))
			return;
	}
	snprintf(word, sizeof(word), range.lo == range.hi ? "%u" : "%u-%u", range.lo, range.hi);
	put(gen, ports, text, range, word);
}

static bool from_define(struct gen *gen, enum gen_define_kind kind, struct gen_numbers *numbers)
{
	unsigned int at = rng_below(&gen->rng, (unsigned int)gen->defines.len);
	const struct gen_define *define = gen->defines.len ? &gen->defines.v[at] : NULL;

	if (!define || define->kind != kind)
		return false;
	*numbers = define->numbers;
	numbers->text = pool_printf(&gen->pool, "$%s", define->name);
	if (!define->alone && rng_chance(&gen->rng, 8) && kind != GEN_DEFINE_PROTOS) {
		numbers->negated = true;
		numbers->text = pool_printf(&gen->pool, "not $%s", define->name);
	}
	return true;
}

void gen_ports(struct gen *gen, unsigned int protos, struct gen_numbers *ret_ports)
{
	struct gen_text text = {.pool = &gen->pool};
	bool exception = false;

	memset(ret_ports, 0, sizeof(*ret_ports));
	if (rng_chance(&gen->rng, 25) && from_define(gen, GEN_DEFINE_PORTS, ret_ports))
		return;
	for (unsigned int i = rng_chance(&gen->rng, 55) ? 1 : rng_between(&gen->rng, 2, 5); i;
	     i--) {
		if (rng_chance(&gen->rng, 35))
			put_port_range(gen, ret_ports, &text);
		else if (!rng_chance(&gen->rng, 30) ||
			 !put_named_port(gen, ret_ports, &text, protos))
			put_number(gen, ret_ports, &text, random_port(gen), NULL);
	}
	if (ret_ports->ranges.len == 0)
		put_number(gen, ret_ports, &text, random_port(gen), NULL);
	if (rng_chance(&gen->rng, 12)) {
		size_t before = ret_ports->ranges.len;

		put_port_exception(gen, ret_ports, &text);
		exception = ret_ports->ranges.len > before;
	}
	done(gen, ret_ports, &text, exception ? 0 : 7);
}

void gen_port_protos(struct gen *gen, struct gen_numbers *ret_protos, unsigned int *ret_bits)
{
	static const struct {
		const char *text;
		unsigned int bits;
	} choices[] = {
		{"tcp", 1},       {"tcp", 1},       {"tcp", 1},
		{"tcp", 1},       {"udp", 2},       {"udp", 2},
		{"udp", 2},       {"6", 1},         {"sctp", 4},
		{"17", 2},        {"tcp, udp", 3},  {"udp,tcp", 3},
		{"sctp, tcp", 5}, {"udp, sctp", 6}, {"tcp, udp, sctp", 7},
	};
	static const uint32_t numbers[] = {PROTO_TCP, PROTO_UDP, PROTO_SCTP};
	unsigned int at = rng_below(&gen->rng, COUNT(choices));

	memset(ret_protos, 0, sizeof(*ret_protos));
	*ret_bits = choices[at].bits;
	if (rng_chance(&gen->rng, 15) && from_define(gen, GEN_DEFINE_PROTOS, ret_protos)) {
		*ret_bits = 3;
		return;
	}
	for (unsigned int i = 0; i < 3; i++) {
		if (choices[at].bits & 1U << i)
			*vec_add(&gen->pool, &ret_protos->ranges) =
				(struct gen_range){.lo = numbers[i], .hi = numbers[i]};
	}
	ret_protos->given = true;
	ret_protos->text = choices[at].text;
}

static const char *const proto_names[] = {"tcp", "udp",  "icmp",    "icmp6", "sctp", "gre",
					  "esp", "ah",   "igmp",    "ipip",  "ip6",  "ospf",
					  "pim", "vrrp", "udplite", "dccp"};

void gen_protos(struct gen *gen, struct gen_numbers *ret_protos)
{
	struct gen_text text = {.pool = &gen->pool};

	memset(ret_protos, 0, sizeof(*ret_protos));
	for (unsigned int i = rng_chance(&gen->rng, 65) ? 1 : rng_between(&gen->rng, 2, 4); i;
	     i--) {
		const char *name = proto_names[rng_below(&gen->rng, COUNT(proto_names))];
		uint32_t number = rng_below(&gen->rng, 256);

		if (rng_chance(&gen->rng, 20))
			put_number(gen, ret_protos, &text, number, NULL);
		else
			put_number(gen, ret_protos, &text, (uint32_t)name_proto(name), name);
	}
	done(gen, ret_protos, &text, 7);
}

/* The sides a type's name is put on: 1 ICMP, 2 ICMPv6. */
static void put_type_name(struct gen *gen, struct gen_rule *rule, struct gen_text *text,
			  unsigned int sides)
{
	const char *word =
		gen->icmp_names.v[rng_below(&gen->rng, (unsigned int)gen->icmp_names.len)];
	const struct icmp_name *name = name_icmp(word);
	struct gen_text unused[2] = {{.pool = &gen->pool}, {.pool = &gen->pool}};
	int numbers[2];

	if (!name || ((sides & 4) && ((sides & 1 && name->v4 < 0) || (sides & 2 && name->v6 < 0))))
		return;
	numbers[0] = sides & 1 ? name->v4 : -1;
	numbers[1] = sides & 2 ? name->v6 : -1;
	for (int i = 0; i < 2; i++) {
		if (numbers[i] >= 0 &&
		    has(&rule->types[i], (uint32_t)numbers[i], (uint32_t)numbers[i]))
			return;
	}
	for (int i = 0; i < 2; i++) {
		if (numbers[i] >= 0)
			put_number(gen, &rule->types[i], &unused[i], (uint32_t)numbers[i], word);
	}
	text_put(text, "%s%s", text->bytes.len ? ", " : "", word);
}

static void put_types(struct gen *gen, struct gen_rule *rule, struct gen_text *text,
		      unsigned int sides, unsigned int count)
{
	bool one_side = (sides & 4) && (sides & 3) != 3;

	for (unsigned int tries = 0; tries < count || (tries < 50 && !text->bytes.len); tries++) {
		uint32_t number = rng_below(&gen->rng, rng_chance(&gen->rng, 60) ? 20 : 256);

		if (one_side && rng_chance(&gen->rng, 40))
			put_number(gen, &rule->types[sides & 2 ? 1 : 0], text, number, NULL);
		else
			put_type_name(gen, rule, text, sides);
	}
}

static void put_code(struct gen *gen, struct gen_rule *rule, struct gen_text *text)
{
	struct gen_text codes = {.pool = &gen->pool};

	for (unsigned int i = rng_between(&gen->rng, 1, 3); i; i--)
		put_number(gen, &rule->code, &codes, rng_below(&gen->rng, 6), NULL);
	done(gen, &rule->code, &codes, 6);
	text_put(text, " code %s", rule->code.text);
}

/* `proto ... type ... code ...`; bit 4 of sides says that the protocol is written. */
void gen_types(struct gen *gen, struct gen_rule *rule, const char **ret_text)
{
	static const char *const protos[] = {"", "proto icmp ", "proto icmp6 ",
					     "proto icmp, icmp6 "};
	static const unsigned int proto_sides[] = {3, 5, 6, 7};
	unsigned int at = rng_below(&gen->rng, 4), sides = proto_sides[at];
	unsigned int count = rng_chance(&gen->rng, 60) ? 1 : rng_between(&gen->rng, 2, 4);
	struct gen_text text = {.pool = &gen->pool};
	bool negated = rng_chance(&gen->rng, 12);

	put_types(gen, rule, &text, sides, count);
	rule->types[0].negated = rule->types[1].negated = negated;
	rule->families = (rule->types[0].given ? 1U : 0U) | (rule->types[1].given ? 2U : 0U);
	if (!negated && !strchr(text_done(&text), ',') && rng_chance(&gen->rng, 35))
		put_code(gen, rule, &text);
	*ret_text = pool_printf(&gen->pool, "%stype %s%s", protos[at], negated ? "not " : "",
				text_done(&text));
}

static void put_flags(struct gen_text *text, unsigned int flags)
{
	static const char *const names[] = {"fin", "syn", "rst", "psh", "ack", "urg"};
	const char *separator = "";

	for (unsigned int i = 0; i < COUNT(names); i++) {
		if (!(flags & 1U << i))
			continue;
		text_put(text, "%s%s", separator, names[i]);
		separator = ",";
	}
}

void gen_flags(struct gen *gen, struct gen_rule *rule, const char **ret_text)
{
	struct gen_text text = {.pool = &gen->pool};
	uint8_t mask = (uint8_t)rng_between(&gen->rng, 1, 63);

	rule->flags_given = true;
	rule->flags_set = (uint8_t)rng_between(&gen->rng, 1, 63);
	if (rng_chance(&gen->rng, 10)) {
		rule->flags_set = 0;
		rule->flags_mask = 0x3f;
		*ret_text = "flags none";
		return;
	}
	if (rng_chance(&gen->rng, 40))
		rule->flags_set = rng_chance(&gen->rng, 60) ? FLAG_SYN : FLAG_SYN | FLAG_ACK;
	text_put(&text, "flags ");
	put_flags(&text, rule->flags_set);
	rule->flags_mask = rule->flags_set | FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK;
	if (rng_chance(&gen->rng, 60)) {
		rule->flags_mask = mask | rule->flags_set;
		text_put(&text, "%s", rng_chance(&gen->rng, 80) ? "/" : " / ");
		put_flags(&text, rule->flags_mask);
	}
	*ret_text = text_done(&text);
}

void gen_vlans(struct gen *gen, struct gen_numbers *ret_vlans)
{
	static const uint32_t usual[] = {1, 2, 3, 7, 8, 100, 255, 256, 4093, 4094};
	struct gen_text text = {.pool = &gen->pool};

	memset(ret_vlans, 0, sizeof(*ret_vlans));
	if (rng_chance(&gen->rng, 15) && from_define(gen, GEN_DEFINE_VLANS, ret_vlans))
		return;
	for (unsigned int i = rng_between(&gen->rng, 1, 3); i; i--) {
		if (rng_chance(&gen->rng, 15))
			put_number(gen, ret_vlans, &text, 0, "none");
		else
			put_number(gen, ret_vlans, &text, usual[rng_below(&gen->rng, COUNT(usual))],
				   NULL);
	}
	done(gen, ret_vlans, &text, 10);
}

void gen_dscps(struct gen *gen, struct gen_numbers *ret_dscps)
{
	static const char *const names[] = {"ef",   "cs0",  "cs1",  "cs7",
					    "af11", "af23", "af41", "af43"};
	struct gen_text text = {.pool = &gen->pool};

	memset(ret_dscps, 0, sizeof(*ret_dscps));
	for (unsigned int i = rng_between(&gen->rng, 1, 3); i; i--) {
		const char *name = names[rng_below(&gen->rng, COUNT(names))];

		if (rng_chance(&gen->rng, 50))
			put_number(gen, ret_dscps, &text, rng_below(&gen->rng, 64), NULL);
		else
			put_number(gen, ret_dscps, &text, (uint32_t)name_dscp(name), name);
	}
	done(gen, ret_dscps, &text, 8);
}

static void put_ethertype(struct gen *gen, struct gen_numbers *types, struct gen_text *text)
{
	static const char *const names[] = {"arp",  "lldp", "eapol",  "mpls",   "pppoe",
					    "ipv4", "ipv6", "0x1234", "0x88F7", "0x88b5"};
	const char *name = names[rng_below(&gen->rng, COUNT(names))];
	uint16_t values[2];
	int count = name_ethertype(name, values);
	struct gen_text unused = {.pool = &gen->pool};

	if (has(types, values[0], values[0]))
		return;
	for (int i = 0; i < count; i++)
		put_number(gen, types, &unused, values[i], name);
	text_put(text, "%s%s", text->bytes.len ? ", " : "", name);
}

void gen_ethertypes(struct gen *gen, struct gen_numbers *ret_types)
{
	struct gen_text text = {.pool = &gen->pool};

	memset(ret_types, 0, sizeof(*ret_types));
	if (rng_chance(&gen->rng, 4)) {
		put(gen, ret_types, &text, (struct gen_range){.lo = 0x600, .hi = 0xffff}, "any");
		done(gen, ret_types, &text, 0);
		return;
	}
	for (unsigned int i = rng_chance(&gen->rng, 70) ? 1 : rng_between(&gen->rng, 2, 4); i; i--)
		put_ethertype(gen, ret_types, &text);
	done(gen, ret_types, &text, 6);
}

void gen_on(struct gen *gen, struct gen_numbers *ret_on)
{
	struct gen_text text = {.pool = &gen->pool};

	memset(ret_on, 0, sizeof(*ret_on));
	for (unsigned int i = rng_chance(&gen->rng, 70) ? 1 : 2; i; i--) {
		unsigned int at = rng_below(&gen->rng, (unsigned int)gen->ifaces.len);

		put_number(gen, ret_on, &text, at, gen->ifaces.v[at]);
	}
	done(gen, ret_on, &text, gen->ifaces.len > ret_on->ranges.len ? 15 : 0);
}

void gen_span(struct gen *gen, const uint32_t *values, unsigned int count, uint32_t max,
	      struct gen_numbers *ret_span)
{
	struct gen_range range = {.lo = values[rng_below(&gen->rng, count)]};

	memset(ret_span, 0, sizeof(*ret_span));
	range.hi = range.lo;
	if (rng_chance(&gen->rng, 65))
		range.hi += rng_between(&gen->rng, 1, rng_chance(&gen->rng, 50) ? 8 : 300);
	range.hi = range.hi > max ? max : range.hi;
	*vec_add(&gen->pool, &ret_span->ranges) = range;
	ret_span->given = true;
	ret_span->text = range.lo == range.hi
				 ? pool_printf(&gen->pool, "%u", range.lo)
				 : pool_printf(&gen->pool, "%u-%u", range.lo, range.hi);
}

static void make_define(struct gen *gen, struct gen_define *define)
{
	unsigned int bits;

	switch (define->kind) {
	case GEN_DEFINE_PORTS:
		gen_ports(gen, 0, &define->numbers);
		break;
	case GEN_DEFINE_PROTOS:
		do
			gen_port_protos(gen, &define->numbers, &bits);
		while (bits != 3);
		break;
	default:
		gen_vlans(gen, &define->numbers);
		break;
	}
	define->alone = define->numbers.negated;
	for (size_t i = 0; i < define->numbers.ranges.len; i++)
		define->alone |= define->numbers.ranges.v[i].negative;
}

/* Made one after the other: a define may stand in a later one. */
void gen_number_defines(struct gen *gen)
{
	unsigned int count = gen->options.with[GEN_DEFINE] ? rng_below(&gen->rng, 6) : 0;

	for (unsigned int i = 0; i < count; i++) {
		struct gen_define define = {
			.name = pool_printf(&gen->pool, "num_%u", i),
			.kind = (enum gen_define_kind)rng_between(&gen->rng, GEN_DEFINE_PORTS,
								  GEN_DEFINE_VLANS),
		};

		make_define(gen, &define);
		*vec_add(&gen->pool, &gen->defines) = define;
	}
}
