// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import/probe and expects: a line for each rule that decides packets. The
// rulesets are the objects of `nft -j list ruleset`, with ' for ".
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/import/import.h"

#define INPUT                                                                                 \
	"{'chain': {'family': 'inet', 'table': 't', 'name': 'in', 'type': 'filter', 'hook': " \
	"'input', 'policy': 'drop'}}, {'chain': {'family': 'inet', 'table': 't', 'name': "    \
	"'over', 'type': 'filter', 'hook': 'forward', 'policy': 'drop'}}"
#define RULE_OF(chain, expr) \
	", {'rule': {'family': 'inet', 'table': 't', 'chain': '" chain "', 'expr': [" expr "]}}"
#define RULE(expr) RULE_OF("in", expr)
#define IS(protocol, field, right)                                                                 \
	"{'match': {'op': '==', 'left': {'payload': {'protocol': '" protocol "', 'field': '" field \
	"'}}, 'right': " right "}}, "
#define RANGE(first, last) "{'range': [" #first ", " #last "]}"
#define NET(addr, len)     "{'prefix': {'addr': '" addr "', 'len': " #len "}}"
#define ACCEPT             "{'accept': null}"
#define DROP               "{'drop': null}"

struct lines_case {
	const char *rules;
	bool forward;
	const char *want[3]; // lines of the policy; after "!": it has none that begins so
};

static const struct lines_case cases[] = {
	// the source is one that no rule lists
	{RULE(IS("ip", "saddr", "'203.0.113.9'") DROP) RULE(IS("tcp", "dport", "22") ACCEPT),
	 false,
	 {"expect drop via \"in 1\" tcp from 203.0.113.9 to self\n",
	  "expect pass via \"in 2\" tcp from 198.51.100.9 to self port 22\n",
	  "# rules below without an expect line: 0 of "}},
	// all are listed: the one after an earlier rule's last
	{RULE(IS("ip", "saddr",
		 "{'set': [" NET("192.0.2.0", 24) ", " NET("198.18.0.0", 15) ", " NET(
			 "198.51.100.0", 24) ", " NET("203.0.113.0", 24) "]}") DROP)
		 RULE(IS("tcp", "dport", "22") ACCEPT),
	 false,
	 {"expect pass via \"in 2\" tcp from 192.0.3.0 to self port 22\n"}},
	// another port, type, flags, and set of flags
	{RULE(IS("tcp", "dport", RANGE(1, 100)) DROP)
		 RULE(IS("tcp", "dport", RANGE(1, 200)) ACCEPT),
	 false,
	 {"expect pass via \"in 2\" tcp from 203.0.113.9 to self port 101\n"}},
	{RULE("{'match': {'op': '==', 'left': {'&': [{'payload': {'protocol': 'tcp', 'field': "
	      "'flags'}}, ['syn', 'ack']]}, 'right': 'syn'}}, " DROP)
		 RULE(IS("tcp", "dport", "22") ACCEPT),
	 false,
	 {"expect pass via \"in 2\" tcp from 203.0.113.9 to self port 22 flags ack\n"}},
	{RULE(IS("icmp", "type", RANGE(3, 5)) ACCEPT),
	 false,
	 {"expect pass via \"in 1\" icmp from 203.0.113.9 to self type source-quench\n"}},
	{RULE(IS("icmpv6", "type", RANGE(1, 4)) ACCEPT),
	 false,
	 {"expect pass via \"in 1\" icmp6 from 2001:db8:113::9 to self type destination-unreachable\n"}},
	// the TTL of neighbour discovery is 255
	{RULE(IS("icmpv6", "type", RANGE(135, 136)) ACCEPT),
	 false,
	 {"expect pass via \"in 1\" icmp6 from 2001:db8:113::9 to self type nd-neighbor-solicit\n"}},
	// IPv6 only
	{RULE(IS("ip6", "saddr", NET("2001:db8:51::", 64)) IS("tcp", "dport", "22") ACCEPT),
	 false,
	 {"expect pass via \"in 1\" tcp from 2001:db8:51:: to self port 22\n",
	  "expect drop via default tcp from 2001:db8:51:1:: to self port 22\n"}},
	// no packet of IPv4 is left
	{RULE("{'match': {'op': '==', 'left': {'meta': {'key': 'nfproto'}}, 'right': 'ipv4'}}, " DROP)
		 RULE(IS("tcp", "dport", "22") ACCEPT),
	 false,
	 {"expect pass via \"in 2\" tcp from 2001:db8:113::9 to self port 22\n"}},
	// destinations: others pass before, and this host's addresses are not known
	{RULE(IS("ip", "daddr", "'224.0.0.251'") ACCEPT) RULE(IS("tcp", "dport", "22") ACCEPT),
	 false,
	 {"# rules below without an expect line: 1 of 6\n", "!expect pass via \"in 1\"",
	  "expect pass via \"in 2\" tcp from 203.0.113.9 to self port 22\n"}},
	{RULE(IS("ip", "daddr", "'192.0.2.7'") IS("tcp", "dport", "22") ACCEPT)
		 RULE(IS("tcp", "dport", RANGE(22, 23)) DROP),
	 false,
	 {"# rules below without an expect line: 1 of 6\n", "!expect pass via \"in 1\"",
	  "expect drop via \"in 2\" tcp from 203.0.113.9 to self port 23\n"}},
	{RULE_OF("over", IS("ip", "daddr", "'192.0.2.7'") ACCEPT)
		 RULE_OF("over", IS("ip", "daddr", NET("192.0.2.0", 28)) DROP),
	 true,
	 {"expect pass via \"over 1\" tcp from 203.0.113.9 to 192.0.2.7\n",
	  "expect drop via \"over 2\" tcp from 203.0.113.9 to 192.0.2.10\n",
	  "# rules below without an expect line: 0 of "}},
	// nothing is left of a rule; no DSCP in a line
	{RULE(IS("tcp", "dport", RANGE(1, 100)) DROP) RULE(IS("tcp", "dport", RANGE(101, 200)) DROP)
		 RULE(IS("tcp", "dport", RANGE(1, 200)) ACCEPT),
	 false,
	 {"# rules below without an expect line: 1 of 7\n", "!expect pass via \"in 3\"",
	  "expect drop via \"in 2\" tcp from 203.0.113.9 to self port 101\n"}},
	{RULE(IS("ip", "dscp", "8") IS("tcp", "dport", "22") DROP),
	 false,
	 {"# rules below without an expect line: 1 of 5\n", "!expect drop via \"in 1\""}},
	// the rules that precede
	{"",
	 false,
	 {"expect pass via \"to other hosts\" tcp from 203.0.113.9 to not self\n",
	  "expect pass via \"not IP\" ethertype arp\n",
	  "expect pass via \"AH\" ah from 2001:db8:113::9 to self\n"}},
	{"", true, {"expect pass via \"to this host\" tcp from 203.0.113.9 to self\n"}},
};

static void translate(const char *objects, const struct import_options *options, struct text *ret)
{
	CLEANUP_FREE char *json = mem_printf("{'nftables': [%s]}", objects);
	struct import_counts n = {0};
	struct err err = {0};

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	if (import_nft(json, strlen(json), options, ret, &n, &err))
		fail_msg("%s: %s", json, err.text);
}

static void test_lines(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct lines_case *c = &cases[i];
		const struct import_options options = {.source = "JSON", .forward = c->forward};
		CLEANUP_FREE char *objects = mem_printf("%s%s", INPUT, c->rules);
		CLEANUP_TEXT struct text got = {0};

		translate(objects, &options, &got);
		for (size_t k = 0; k < ARRAY_SIZE(c->want) && c->want[k]; k++) {
			bool absent = c->want[k][0] == '!';

			if (absent == !!strstr(text_get(&got), c->want[k] + absent))
				fail_msg("%zu: %s\n%s", i, c->want[k], text_get(&got));
		}
	}
}

// Interfaces that an earlier rule does not have.
static void test_interfaces(void **state)
{
	static const char *const names[] = {"near0", "far0"};
	static const struct import_device devices[] = {{"near0", 1}, {"far0", 2}};
	const struct import_options options = {.source = "JSON",
					       .interfaces = names,
					       .n_interfaces = 2,
					       .devices = devices,
					       .n_devices = 2};
	CLEANUP_TEXT struct text got = {0};

	translate(
		INPUT RULE("{'match': {'op': '==', 'left': {'meta': {'key': 'iifname'}}, 'right': "
			   "'near0'}}, " DROP) RULE(IS("tcp", "dport", "22") ACCEPT),
		&options, &got);
	assert_non_null(strstr(text_get(&got), "expect pass via \"in 2\" tcp from 203.0.113.9 to "
					       "self port 22 on far0\n"));
}

static void add_rule(struct text *t, const char *ports, unsigned first, unsigned step)
{
	text_add(t, ", {'rule': {'family': 'inet', 'table': 't', 'chain': 'in', 'expr': [");
	text_add(t, "{'match': {'op': '==', 'left': {'payload': {'protocol': 'ip', 'field': "
		    "'saddr'}}, 'right': {'set': [");
	for (unsigned i = 0; i < 16; i++)
		text_addf(t, "%s'10.%u.0.1'", i ? ", " : "", i);
	text_add(t, "]}}}, {'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', "
		    "'field': 'dport'}}, 'right': {'set': [");
	for (unsigned i = 0; i < 16; i++)
		text_addf(t, ports, i ? ", " : "", first + i * step, first + i * step + 2);
	text_add(t, "]}}}, " DROP "]}}");
}

// Many rules whose packets belong to the first fifteen, each to several: the search
// has a limit of work.
static void test_search_ends(void **state)
{
	const struct import_options options = {.source = "JSON"};
	CLEANUP_TEXT struct text objects = {0}, got = {0};
	uint64_t start;

	text_add(&objects, INPUT);
	for (unsigned i = 0; i < 15; i++)
		add_rule(&objects, "%s{'range': [%u, %u]}", 1 + i * 3, 45);
	for (unsigned i = 0; i < 2500; i++)
		add_rule(&objects, "%s%u", 1 + i % 250, 11 + i / 250);
	start = time_ms(CLOCK_THREAD_CPUTIME_ID);
	translate(text_get(&objects), &options, &got);
	assert_in_range(time_ms(CLOCK_THREAD_CPUTIME_ID) - start, 0, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_search_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
