// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/policy/shadow.c: a rule reported as never matching matches no packet that
// reaches it, over random policies and packets.
#include "tests/unit/policy/world.h"

#include "ctl/base/text.h"
#include "ctl/policy/names.h"
#include "ctl/policy/ranges.h"

#define RULES   14
#define PACKETS 600
#define ROUNDS  1500

struct packet {
	bool ip, fragment, established, unroutable;
	struct addr from, to;
	uint8_t proto, flags, type, code, ttl, dscp;
	uint16_t sport, dport, vlan, ethertype;
	uint32_t length;
	uint64_t mac;
	unsigned iface;
};

// ---- random rules -------------------------------------------------------------------------------

static const char *const pick_of[][8] = {
	{"from 10.0.0.1 ", "from 10.0.0.0/30 ", "from 10.0.0.0/24, not 10.0.0.2 ",
	 "from not 10.0.0.1 ", "from any ", "from @s ", "from 10.0.0.2, 2001:db8::1 ",
	 "from 2001:db8::/64 "},
	{"to 10.0.0.1 ", "to 10.0.0.0/31 ", "to 10.0.0.0/29 ", "to any ", "to 2001:db8::/127 ",
	 "to ::/0 ", "to @s ", "to 10.0.0.0-10.0.0.2 "},
	{"proto tcp ", "proto udp ", "proto tcp, udp ", "proto not tcp ", "proto icmp6 ",
	 "proto gre ", "proto 0, 6, 17, 58 ", "proto icmp, icmp6 "},
	{"vlan 7 ", "vlan none ", "vlan not none ", "vlan 5-9 ", "vlan not 7 ", "vlan 7, none ",
	 "vlan 6 ", "vlan 0-4095 "},
	{"on eth0 ", "on eth1 ", "on eth0, eth1 ", "on not eth0 ", "on eth* ", "ttl 255 ",
	 "ttl 1-64 ", "ttl 64 "},
	{"dscp 0 ", "dscp ef ", "dscp not ef ", "dscp 0-46 ", "length 40-60 ", "length 50 ",
	 "fragment ", "established "},
	{"mac 02:00:00:00:00:01 ", "mac @m ", "mac not @m ",
	 "mac 02:00:00:00:00:01-02:00:00:00:00:03 ", "mac not 02:00:00:00:00:02 ",
	 "mac 00:00:00:00:00:00-ff:ff:ff:ff:ff:ff ", "mac 02:00:00:00:00:02, 02:00:00:00:00:04 ",
	 "mac @m, 02:00:00:00:00:05 "},
	{"over 10/s ", "probability 50% ", "log ", "not established ", "length 0-100 ",
	 "unroutable ", "established ", "ttl 0-255 "},
};

static const char *const with_ports[] = {
	"port 80 ",
	"port 80, 443 ",
	"port not 80 ",
	"proto tcp flags syn ",
	"flags syn/syn,ack ",
	"flags none ",
	"type echo-request ",
	"type neighbour-solicitation ",
	"type not redirect ",
	"proto icmp6 type 135-136 ",
	"type echo-request code 0 ",
	"proto udp port 50-90 ",
};

static const char *const frames[] = {"ethertype any ", "ethertype ipv4, ipv6 ", "ethertype arp ",
				     "ethertype not arp ", "ethertype ipv6 "};

static const char *random_of(uint64_t *seed, const char *const *words, size_t n)
{
	return words[unit_below(seed, (unsigned)n)];
}

static void put_rule(struct text *t, uint64_t *seed, unsigned number)
{
	static const char *const actions[] = {"drop ",  "pass ", "reject ",      "redirect eth9 ",
					      "count ", "drop ", "always drop ", "always pass "};
	bool frame = unit_below(seed, 6) == 0;

	text_addf(t, "\"r%u\" ", number);
	if (frame) {
		text_addf(t, "drop %s", random_of(seed, frames, ARRAY_SIZE(frames)));
		text_add(t, unit_below(seed, 3) ? "" : random_of(seed, pick_of[3], 8));
		text_add(t, unit_below(seed, 3) ? "" : random_of(seed, pick_of[4], 5));
		text_add(t, unit_below(seed, 5) ? "\n" : "length 40-60\n");
		return;
	}
	text_add(t, random_of(seed, actions, ARRAY_SIZE(actions)));
	if (unit_below(seed, 3) == 0)
		text_add(t, random_of(seed, with_ports, ARRAY_SIZE(with_ports)));
	else if (unit_below(seed, 3) == 0)
		text_add(t, random_of(seed, pick_of[2], 8));
	for (size_t i = 0; i < ARRAY_SIZE(pick_of); i++)
		if (i != 2 && unit_below(seed, 4) == 0)
			text_add(t, random_of(seed, pick_of[i], 8));
	text_add(t, "\n");
}

// ---- random packets -----------------------------------------------------------------------------

static struct addr random_addr(uint64_t *seed, bool v6)
{
	const uint8_t bytes[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)unit_below(seed, 4)};

	return v6 ? addr_from_v6(bytes) : addr_from_v4(0x0a | (uint32_t)unit_below(seed, 6) << 24);
}

static struct packet random_packet(uint64_t *seed)
{
	static const uint8_t protos[] = {6, 6, 17, 17, 47, 1, 58, 58, 132};
	static const uint8_t types[] = {8, 128, 135, 136, 5, 137, 0};
	static const uint8_t ttls[] = {255, 255, 64, 1};
	static const uint8_t flags[] = {2, 0, 18, 16, 41};
	static const uint16_t ports[] = {80, 443, 60, 1000}, vlans[] = {0, 0, 6, 7, 4095};
	bool v6 = unit_below(seed, 2);
	struct packet p = {
		.ip = unit_below(seed, 6),
		.fragment = unit_below(seed, 5) == 0,
		.established = unit_below(seed, 3) == 0,
		.unroutable = unit_below(seed, 3) == 0,
		.from = random_addr(seed, v6),
		.to = random_addr(seed, v6),
		.proto = protos[unit_below(seed, sizeof(protos))],
		.flags = flags[unit_below(seed, sizeof(flags))],
		.type = types[unit_below(seed, sizeof(types))],
		.code = (uint8_t)unit_below(seed, 2),
		.ttl = ttls[unit_below(seed, sizeof(ttls))],
		.dscp = unit_below(seed, 2) ? 46 : 0,
		.sport = ports[unit_below(seed, 4)],
		.dport = ports[unit_below(seed, 4)],
		.vlan = vlans[unit_below(seed, 5)],
		.ethertype = v6 ? 0x86dd : 0x0800,
		.length = 30 + unit_below(seed, 80),
		.mac = 0x020000000000 + unit_below(seed, 7),
		.iface = unit_below(seed, 2),
	};

	if (!p.ip)
		p.ethertype = unit_below(seed, 2) ? 0x0806 : 0x88cc;
	return p;
}

// ---- a slow reading of the resolved form --------------------------------------------------------

static bool in_ranges(const struct resolved_ranges *r, uint16_t value)
{
	return !r->given || ranges_has(r->at, r->n, value);
}

static bool in_set(const struct resolved *r, const struct resolved_address *a,
		   const struct addr *addr)
{
	return a->kind != RESOLVED_SET || resolved_contains(&r->addresses[a->index], addr, NULL);
}

static bool in_span(const struct resolved_span *s, uint32_t value)
{
	return !s->given || (s->first <= value && value <= s->last);
}

static bool has_ports(const struct packet *p)
{
	return !p->fragment && (p->proto == 6 || p->proto == 17 || p->proto == 132);
}

static bool is_icmp(const struct packet *p)
{
	return !p->fragment && p->proto == (p->from.family == 4 ? 1 : 58);
}

static bool types_match(const struct resolved_rule *rule, const struct packet *p)
{
	for (size_t i = 0; i < rule->icmp.n; i++)
		if (rule->icmp.at[i].family == p->from.family && rule->icmp.at[i].type == p->type &&
		    rule->icmp.at[i].code_first <= p->code && p->code <= rule->icmp.at[i].code_last)
			return is_icmp(p);
	return false;
}

static bool is_discovery(const struct packet *p)
{
	return p->ip && is_icmp(p) && p->from.family == 6 && p->ttl == 255 &&
	       names_is_neighbour_discovery(p->type);
}

static bool ip_matches(const struct resolved *r, const struct resolved_rule *rule,
		       const struct packet *p)
{
	if (rule->proto.given && !(rule->proto.bits[p->proto / 64] >> p->proto % 64 & 1))
		return false;
	if ((rule->sport.given || rule->dport.given) &&
	    (!has_ports(p) || !in_ranges(&rule->sport, p->sport) ||
	     !in_ranges(&rule->dport, p->dport)))
		return false;
	if (rule->flags.given &&
	    (!has_ports(p) || p->proto != 6 || (p->flags & rule->flags.mask) != rule->flags.set))
		return false;
	if (rule->icmp.given && !types_match(rule, p))
		return false;
	return in_set(r, &rule->from, &p->from) && in_set(r, &rule->to, &p->to) &&
	       in_span(&rule->ttl, p->ttl) && in_span(&rule->length, p->length) &&
	       (!rule->dscp.given || rule->dscp.bits[0] >> p->dscp & 1) &&
	       (!rule->fragment || p->fragment) && (!rule->unroutable || p->unroutable) &&
	       (!rule->established.given ||
		(p->established != rule->established.negated && has_ports(p)));
}

static bool matches(const struct resolved *r, const struct resolved_rule *rule,
		    const struct packet *p)
{
	if ((!rule->icmp.given && is_discovery(p)) || !in_ranges(&rule->vlan, p->vlan) ||
	    (rule->on.given && !(rule->on.bits[0] >> p->iface & 1)))
		return false;
	if (rule->ethertype.given)
		return in_ranges(&rule->ethertype, p->ethertype) &&
		       in_span(&rule->length, p->length + 14);
	return p->ip && ip_matches(r, rule, p);
}

static bool mac_matches(const struct resolved *r, const struct resolved_rule *rule,
			const struct packet *p)
{
	const struct resolved_edges *edges;
	size_t below = 0;

	if (!rule->mac.given)
		return true;
	edges = &r->macs[rule->mac.index];
	while (below < edges->n && edges->at[below] <= p->mac)
		below++;
	return below % 2;
}

static bool ends(const struct resolved_rule *rule)
{
	return rule->action != ACTION_COUNT && !rule->limit.given && !rule->probability.given;
}

// ---- the comparison -----------------------------------------------------------------------------

static bool is_shadowed(const struct environment *w, const struct resolved_rule *rule)
{
	char text[64];

	snprintf(text, sizeof(text), "rule \"%s\" can never match", rule->identity);
	return strstr(w->messages, text);
}

static void check_packet(const struct environment *w, const struct resolved *r,
			 const bool *shadowed, const struct packet *p)
{
	for (size_t i = 0; i < r->n_rules; i++) {
		bool match = matches(r, &r->rules[i], p) && mac_matches(r, &r->rules[i], p);

		if (match && (shadowed[i] || r->rules[i].impossible))
			fail_msg("\"%s\" matches:\n%s\n%s", r->rules[i].identity, w->policy,
				 w->messages);
		if (match && ends(&r->rules[i]))
			return;
	}
}

static void test_random(void **state)
{
	uint64_t seed = 0x5ad0;
	struct environment w = {0};
	unsigned found = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		CLEANUP(text_free) struct text text = {0};
		bool shadowed[RULES];
		struct resolved *r;

		text_add(&text, "interface eth0, eth1\n"
				"set s { 10.0.0.0/29, not 10.0.0.3, 2001:db8::2 }\n"
				"set m macs { 02:00:00:00:00:01-02:00:00:00:00:03, "
				"not 02:00:00:00:00:02 }\n");
		for (unsigned i = 0; i < RULES; i++)
			put_rule(&text, &seed, i);
		r = environment_load(&w, text_get(&text));
		if (!r)
			continue; // two words of a rule did not go together
		for (size_t i = 0; i < r->n_rules; i++) {
			shadowed[i] = is_shadowed(&w, &r->rules[i]);
			found += shadowed[i];
		}
		for (unsigned i = 0; i < PACKETS; i++) {
			struct packet p = random_packet(&seed);

			check_packet(&w, r, shadowed, &p);
		}
		resolved_free(r);
	}
	environment_free(&w);
	print_message("%u rules in the shadow of another\n", found);
	assert_true(found > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
