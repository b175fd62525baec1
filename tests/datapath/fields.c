// SPDX-License-Identifier: GPL-2.0-only
// Each field and condition of a rule, both ways: a packet that matches, and one that does not.
//
// The fields are in ctl/policy/rule_fields.h: one without a sample here fails. The short program
// looks them up in four ways, each with lists of all fields; so there are four policies.
#include <netinet/in.h>
#include <string.h>

#include "common/matrix.h"
#include "ctl/base/text.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/test_program.h"
#include "ctl/policy/fields.h"
#include "tests/datapath/balance_rig.h"
#include "tests/datapath/frame.h"
#include "tests/datapath/suite.h"

// A packet and what is asked about it; 0: as usual.
struct parts {
	uint8_t family; // the only one; 0: both
	uint8_t proto;  // TCP
	uint16_t sport, dport;
	uint8_t flags; // ACK
	bool reply;    // ICMP: an answer to an echo request, not the request
	uint16_t vlan;
	uint8_t ttl, dscp;
	uint8_t payload; // bytes
	bool later;      // a later fragment
	bool stranger;   // from an address that no rule names
	uint8_t dst;     // last byte
	uint8_t mac;     // of the source: last byte
	uint8_t iface;   // number in the policy, and 1: the first one
	bool over, established, unroutable;
};

// rule: "%s" is replaced by the sources of the packets of this field.
struct sample {
	const char *rule;
	struct parts hit, miss;
	bool rare; // the short program does not read `hit`
};

static const struct sample samples[AST_RULE_FIELDS] = {
	[AST_FROM] = {"from %s", .miss = {.stranger = true}},
	[AST_SPORT] = {"from %s port 1001", .hit = {.sport = 1001}, .miss = {.sport = 59651}},
	[AST_TO] = {"from %s to 192.0.2.7, 2001:db8::7", .hit = {.dst = 7}, .miss = {.dst = 8}},
	[AST_DPORT] = {"from %s to any port 1001", .hit = {.dport = 1001},
		       .miss = {.dport = 59651}},
	[AST_PROTO] = {"from %s proto udp", .hit = {.proto = IPPROTO_UDP}},
	[AST_TYPE] = {"from %s proto icmp, icmp6 type echo-request", .hit = {.proto = IPPROTO_ICMP},
		      .miss = {.proto = IPPROTO_ICMP, .reply = true}},
	[AST_FLAGS] = {"from %s proto tcp flags syn", .hit = {.flags = 0x02}},
	[AST_VLAN] = {"from %s vlan 5", .hit = {.vlan = 5}, .miss = {.vlan = 6}},
	[AST_ON] = {"from %s on eth1", .hit = {.iface = 2}},
	[AST_ETHERTYPE] = {"vlan 77 ethertype 0x0800", .hit = {.family = 4, .vlan = 77},
			   .miss = {.family = 6, .vlan = 77}},
	[AST_FRAGMENT] = {"from %s fragment", .hit = {.later = true}, .rare = true},
	[AST_FROM_PAIRS] = {"from @near", .hit = {.sport = 1001}, .miss = {.sport = 1002}},
	[AST_TO_PAIRS] = {"from %s to @far", .hit = {.dst = 7, .dport = 1001},
			  .miss = {.dst = 7, .dport = 1002}},
	[AST_MAC] = {"from %s mac 02:00:00:00:00:02-02:00:00:00:00:07, not 02:00:00:00:00:04",
		     .hit = {.mac = 7}, .miss = {.mac = 4}},
	[AST_LENGTH] = {"from %s length 200-300", .hit = {.payload = 200}, .miss = {.payload = 20}},
	[AST_TTL] = {"from %s ttl 5", .hit = {.ttl = 5}, .miss = {.ttl = 6}},
	[AST_DSCP] = {"from %s dscp 46", .hit = {.dscp = 46}, .miss = {.dscp = 45}},
	[AST_ESTABLISHED] = {"from %s established", .hit = {.established = true}},
	[AST_UNROUTABLE] = {"from %s unroutable", .hit = {.unroutable = true}},
	[AST_PROBABILITY] = {"from %s probability 50%", .hit = {.over = true}},
	[AST_LIMIT] = {"from %s over 10/s", .hit = {.over = true}},
};

#define FIELD_NAME(symbol, ...) [AST_##symbol] = #symbol,
static const char *const names[] = {RULE_FIELDS(FIELD_NAME)};

// ---- frames -------------------------------------------------------------------------------------

static void put(struct frame *f, const void *bytes, size_t n)
{
	memcpy(f->at + f->len, bytes, n);
	f->len += n;
}

static void put16(struct frame *f, unsigned value)
{
	put(f, (const uint8_t[]){(uint8_t)(value >> 8), (uint8_t)value}, 2);
}

static uint8_t or (unsigned value, unsigned usual)
{
	return (uint8_t)(value ? value : usual);
}

static void put_link(struct frame *f, int family, const struct parts *p)
{
	const uint8_t macs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, or (p->mac, 2)};

	*f = (struct frame){0};
	put(f, macs, sizeof(macs));
	if (p->vlan) {
		put16(f, 0x8100);
		put16(f, p->vlan);
	}
	put16(f, family == 4 ? 0x0800 : 0x86dd);
}

static void put_ip4(struct frame *f, const struct parts *p, uint8_t src, uint8_t proto,
		    size_t payload)
{
	const uint8_t addresses[] = {p->stranger ? 203 : 198, 51, 100, src, 192, 0, 2,
				     or (p->dst, 1)};
	const uint8_t rest[] = { or (p->ttl, 64), proto, 0, 0};

	put16(f, 0x4500u | (unsigned)p->dscp << 2);
	put16(f, (unsigned)(20 + payload));
	put16(f, 1);
	put16(f, p->later ? 64 : 0);
	put(f, rest, sizeof(rest));
	put(f, addresses, sizeof(addresses));
}

static void put_ip6(struct frame *f, const struct parts *p, uint8_t src, uint8_t proto,
		    size_t payload)
{
	uint8_t from[16] = {0x20, 0x01, 0x0d, 0xb8, 0, p->stranger ? 0x99 : 1, [15] = src};
	uint8_t to[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = or (p->dst, 1)};
	const uint8_t fragment[] = {proto, 0, 2, 0, 0, 0, 0, 1};

	put16(f, 0x6000u | (unsigned)p->dscp << 6);
	put16(f, 0);
	put16(f, (unsigned)(payload + (p->later ? sizeof(fragment) : 0)));
	put16(f, (unsigned)(p->later ? IPPROTO_FRAGMENT : proto) << 8 | or (p->ttl, 64));
	put(f, from, sizeof(from));
	put(f, to, sizeof(to));
	if (p->later)
		put(f, fragment, sizeof(fragment));
}

static size_t l4_bytes(uint8_t proto)
{
	return proto == IPPROTO_TCP ? 20 : 8;
}

static void put_l4(struct frame *f, const struct parts *p, uint8_t proto)
{
	const uint8_t type = proto == IPPROTO_ICMP ? (p->reply ? 0 : 8) : p->reply ? 129 : 128;
	size_t end = f->len + l4_bytes(proto) + p->payload;

	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) {
		put16(f, (unsigned)type << 8);
		f->len = end;
		return;
	}
	put16(f, p->sport ? p->sport : 1000);
	put16(f, p->dport ? p->dport : 2000);
	if (proto == IPPROTO_UDP) {
		put16(f, 8u + p->payload);
	} else {
		f->len += 8;
		put16(f, 0x5000u | or (p->flags, 0x10));
	}
	f->len = end;
}

// From the last byte `src`.
static void build(struct frame *f, int family, const struct parts *p, uint8_t src)
{
	uint8_t proto = or (p->proto, IPPROTO_TCP);

	if (proto == IPPROTO_ICMP && family == 6)
		proto = IPPROTO_ICMPV6;
	put_link(f, family, p);
	(family == 4 ? put_ip4 : put_ip6)(f, p, src, proto, l4_bytes(proto) + p->payload);
	put_l4(f, p, proto);
}

// ---- policies -----------------------------------------------------------------------------------

static uint8_t source_of(size_t field)
{
	return (uint8_t)(field + 1);
}

// The rules of all samples. `others` follow: they match no packet, but look at no other field than
// an address, so that rows of many fields have them.
static void add_samples(struct text *t, bool others)
{
	for (size_t field = 0; field < AST_RULE_FIELDS; field++) {
		const char *rule = samples[field].rule ? samples[field].rule : "vlan 99";
		const char *at = strstr(rule, "%s");

		text_add(t, "drop ");
		text_addn(t, rule, at ? (size_t)(at - rule) : strlen(rule));
		if (at)
			text_addf(t, "198.51.100.%u, 2001:db8:1::%x%s", source_of(field),
				  source_of(field), at + 2);
		text_addc(t, '\n');
	}
	if (others)
		text_add(
			t,
			"drop from 203.0.113.9, 2001:db8:2::9\ndrop to 203.0.113.9, 2001:db8:2::9\n");
}

// Rules that match no packet. wide: their rows all differ.
static void add_fillers(struct text *t, int n, bool wide)
{
	for (int i = 1; i <= n; i++) {
		text_addf(t, "drop from 203.0.113.%d, 2001:db8:2::%x", i, i);
		if (wide)
			text_addf(t, " port %d-200 to 10.0.0.%d-10.0.0.%d port 1-%d vlan %d-%d", i,
				  i, i + 8, i, i + 100, i + 102);
		text_addc(t, '\n');
	}
}

enum shape { FEW_ROWS, ONE_WORD, ONE_OF_TWO, BLOCK };

// The samples of BLOCK are in two words, and so are bits of the summary.
static void add_rules(struct text *t, enum shape shape)
{
	const int rules = AST_RULE_FIELDS + 2;

	const unsigned near = source_of(AST_FROM_PAIRS);

	text_add(t, "interface eth0 optional\ninterface eth1 optional\n");
	text_addf(t,
		  "set near pairs { 198.51.100.%u port 1001, 2001:db8:1::%x port 1001, "
		  "203.0.113.9 port 1002, 2001:db8:2::9 port 1002 }\n",
		  near, near);
	text_add(t, "set far pairs { 192.0.2.7 port 1001, 2001:db8::7 port 1001, "
		    "192.0.2.8 port 1002, 2001:db8::8 port 1002 }\n");
	if (shape == ONE_WORD)
		add_fillers(t, 64 - rules, true);
	if (shape >= ONE_OF_TWO)
		add_fillers(t, 64, false);
	add_samples(t, shape != FEW_ROWS);
	if (shape == BLOCK) {
		add_fillers(t, 64 - rules, false);
		add_samples(t, true);
	}
}

static int first_of(enum shape shape)
{
	return shape == FEW_ROWS ? 0 : shape == ONE_WORD ? 64 - (AST_RULE_FIELDS + 2) : 64;
}

// The tables are those that the shape is to have.
static void check_tables(struct test *t, const struct candidate *c, enum shape shape)
{
	static const uint32_t words[] = {1, 1, 2, 3};
	const struct matrix_built *m = &c->image->matrix[MATRIX_RULES];

	CHECK(t, m->words == words[shape], "the rules have %u words", m->words);
	CHECK(t, (m->n_rows <= MATRIX_SMALL) == (shape == FEW_ROWS) || m->words > 1,
	      "the rules have %zu rows", m->n_rows);
}

// ---- the test -----------------------------------------------------------------------------------

enum way { SHORT, SHORT_BALANCE, GENERAL };

static void load(struct test *t, struct candidate *c, enum shape shape, enum way way)
{
	static const char service[] = "service s { vip 192.0.2.99; proto tcp; port 80; mode dr; "
				      "check none; backend 10.0.0.1 }\n";
	struct generation_options options = {.general_only = way == GENERAL};
	CLEANUP_TEXT struct text text = {0};
	struct err err = {0};

	add_rules(&text, shape);
	if (way == SHORT_BALANCE)
		text_add(&text, service);
	balance_rig_compile(c, text_get(&text));
	check_tables(t, c, shape);
	if (way == SHORT_BALANCE) {
		if (candidate_plan(c, NULL, 0, &err))
			test_die(&err);
		options.load = &c->lb.load;
	}
	if (generation_load(NULL, c->image, &options, &c->generation, NULL, &err) ||
	    test_program_open(NULL, c->generation, &c->test, &err))
		test_die(&err);
}

// May the short program not know what becomes of the packet? A service may follow what passes.
static bool is_asked(size_t field, enum way way, bool hits)
{
	return way == GENERAL || fields[field].condition || (hits && samples[field].rare) ||
	       (way == SHORT_BALANCE && !hits);
}

static void check_packet(struct test *t, struct candidate *c, enum shape shape, enum way way,
			 size_t field, int family, bool hits)
{
	const struct parts *p = hits ? &samples[field].hit : &samples[field].miss;
	const struct policy_test ask = {
		.iface = or (p->iface, 1),
		.over = p->over,
		.established = p->established,
		.unroutable = p->unroutable,
	};
	int rule = hits ? first_of(shape) + (int)field : -1;
	struct test_result result;
	struct frame f;
	struct err err = {0};

	if (p->family && p->family != family)
		return;
	build(&f, family, p, source_of(field));
	if (test_program_run(c->test, f.at, f.len, &ask, &result, &err))
		test_die(&err);
	CHECK(t,
	      result.rule == rule &&
		      result.reason == (hits ? REASON_DROP_RULE : REASON_PASS_DEFAULT),
	      "%s, IPv%d, packet that %s, %s: rule %d, reason %u", names[field], family,
	      hits ? "matches" : "does not match", way == GENERAL ? "general way" : "short way",
	      result.rule, result.reason);
	CHECK(t, is_asked(field, way, hits) || !result.general,
	      "%s, IPv%d: the general program is asked", names[field], family);
}

static void check_way(struct test *t, enum shape shape, enum way way)
{
	static const struct dns_options no_names;
	CLEANUP_CANDIDATE struct candidate *c = candidate_new(&no_names, NULL);

	load(t, c, shape, way);
	for (size_t field = 0; field < AST_RULE_FIELDS; field++) {
		if (!CHECK(t, samples[field].rule, "the field %s has no sample", names[field]))
			continue;
		for (int family = 4; family <= 6; family += 2) {
			check_packet(t, c, shape, way, field, family, true);
			check_packet(t, c, shape, way, field, family, false);
		}
	}
}

static void check_shape(struct test *t, enum shape shape)
{
	check_way(t, shape, SHORT);
	check_way(t, shape, SHORT_BALANCE);
	check_way(t, shape, GENERAL);
}

static void test_few_rows(struct test *t)
{
	check_shape(t, FEW_ROWS);
}

static void test_one_word(struct test *t)
{
	check_shape(t, ONE_WORD);
}

static void test_one_of_two(struct test *t)
{
	check_shape(t, ONE_OF_TWO);
}

static void test_block(struct test *t)
{
	check_shape(t, BLOCK);
}

const struct named_test field_tests[] = {
	{"fields: few rows", test_few_rows},
	{"fields: one word of many rows", test_one_word},
	{"fields: one word of several", test_one_of_two},
	{"fields: a block of words", test_block},
	{NULL, NULL},
};
