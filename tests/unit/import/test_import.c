// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import: rulesets as JSON (tests/golden/import/*.json) and the policies for them
// (*.weir), single rules, and bad input. BLESS=1 writes the policies.
#include "tests/unit/base/unit.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/import/import.h"

#define FOLDER     "tests/golden/import/"
#define FILE_LIMIT (1u << 20)
#define NOW        1767225600 // 2026-01-01

static const char *const near0[] = {"near0"};
static const struct import_device devices[] = {
	{"near0", 1}, {"eth1", 0}, {"docker0", 0}, {"br-lan", 0}};

// ---- policies -----------------------------------------------------------------------------------

static void compare(const char *path, const char *suffix, const struct import_options *options)
{
	CLEANUP_FREE char *json = NULL, *want = NULL;
	CLEANUP_FREE char *golden = mem_printf("%.*s%s", (int)(strlen(path) - 5), path, suffix);
	CLEANUP_TEXT struct text got = {0};
	struct import_counts counts = {0};
	struct err err = {0};
	size_t len;

	assert_int_equal(file_read(path, FILE_LIMIT, &json, &len, &err), 0);
	if (import_nft(json, len, options, &got, &counts, &err))
		text_addf(&got, "%s\n", err.text);
	if (getenv("BLESS"))
		assert_int_equal(file_replace(golden, got.at, got.len, 0644, &err), 0);
	assert_int_equal(file_read(golden, FILE_LIMIT, &want, &len, &err), 0);
	assert_string_equal(text_get(&got), want);
}

static void test_policies(void **state)
{
	const struct import_options plain = {.source = "JSON", .now_s = NOW};
	const struct import_options on = {.source = "JSON",
					  .now_s = NOW,
					  .interfaces = near0,
					  .n_interfaces = 1,
					  .devices = devices,
					  .n_devices = ARRAY_SIZE(devices)};
	const struct import_options forward = {.source = "JSON", .forward = true, .now_s = NOW};
	glob_t found;

	assert_int_equal(glob(FOLDER "*.json", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 4);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		compare(found.gl_pathv[i], ".weir", &plain);
		compare(found.gl_pathv[i], "-near0.weir", &on);
		compare(found.gl_pathv[i], "-forward.weir", &forward);
	}
	globfree(&found);
}

// ---- single rules -------------------------------------------------------------------------------

#define CHAIN(family, name, more)                                                                \
	"{\"chain\": {\"family\": \"" family "\", \"table\": \"t\", \"name\": \"" name "\"" more \
	"}}"
#define BASE(type, hook, policy) \
	", \"type\": \"" type "\", \"hook\": \"" hook "\", \"policy\": \"" policy "\""
#define RULE(chain, expr)                                                                \
	"{\"rule\": {\"family\": \"inet\", \"table\": \"t\", \"chain\": \"" chain "\", " \
	"\"expr\": [" expr "]}}"
#define SET(name, type, more)                                                                   \
	"{\"set\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"" name "\", \"type\": " \
	"\"" type "\"" more "}}"
#define CHAINS                                                                              \
	"{\"nftables\": [" CHAIN("inet", "in", BASE("filter", "input", "drop")) ", " CHAIN( \
		"inet", "sub", "") ", " CHAIN("inet", "pre", BASE("nat", "prerouting", "accept"))
#define TAIL "]}"
#define MATCH(op, left, right) \
	"{\"match\": {\"op\": \"" op "\", \"left\": " left ", \"right\": " right "}}"
#define PAYLOAD(protocol, field) \
	"{\"payload\": {\"protocol\": \"" protocol "\", \"field\": \"" field "\"}}"
#define META(key)  "{\"meta\": {\"key\": \"" key "\"}}"
#define CT(key)    "{\"ct\": {\"key\": \"" key "\"}}"
#define PORT(n)    MATCH("==", PAYLOAD("tcp", "dport"), n)
#define SYN        MATCH("==", "{\"&\": [" PAYLOAD("tcp", "flags") ", [\"syn\", \"ack\"]]}", "\"syn\"")
#define MARK       MATCH("==", META("mark"), "1")
#define ACCEPT     "{\"accept\": null}"
#define DROP       "{\"drop\": null}"
#define LIMIT(inv) "{\"limit\": {\"rate\": 5, \"burst\": 7, \"per\": \"hour\"" inv "}}"
#define OVER       LIMIT(", \"inv\": true")
#define INVERTED   ", \"inv\": true"
#define METER(op, burst, inv)                                                                      \
	"{\"set\": {\"op\": \"" op "\", \"elem\": " PAYLOAD(                                       \
		"ip", "saddr") ", \"set\": "                                                       \
			       "\"@seen\", \"stmt\": [{\"limit\": {\"rate\": 1, \"burst\": " burst \
			       ", \"per\": "                                                       \
			       "\"second\"" inv "}}]}}"
#define NO_RATE       "\"in 1\" pass proto tcp flags syn/syn,ack\n"
#define SEEN(timeout) SET("seen", "ipv4_addr", ", \"flags\": \"dynamic\"" timeout) ", "

struct one_rule {
	const char *objects; // in the ruleset
	const char *expr;    // in the rule of chain "in"
	const char *want;    // a line of the policy; after "!": that it does not have
	size_t translated, widened, omitted;
};

static void test_one(const struct one_rule *one, const struct import_options *options)
{
	CLEANUP_FREE char *json =
		mem_printf(CHAINS ", %s" RULE("in", "%s") TAIL, one->objects, one->expr);
	CLEANUP_TEXT struct text got = {0};
	struct import_counts n = {0};
	struct err err = {0};
	bool absent = one->want[0] == '!';

	if (import_nft(json, strlen(json), options, &got, &n, &err))
		fail_msg("%s: %s", json, err.text);
	if (absent == !!strstr(got.at, one->want + absent))
		fail_msg("%s\n%s:\n%s", json, one->want, got.at);
	if (n.translated != one->translated || n.widened != one->widened ||
	    n.omitted != one->omitted)
		fail_msg("%s: %zu, %zu, %zu\n%s", json, n.translated, n.widened, n.omitted, got.at);
}

static const struct one_rule rules[] = {
	{"", PORT("22") ", " ACCEPT, "\"in 1\" pass proto tcp to any port 22\n", 1, 0, 0},
	{"", PORT("{\"range\": [1, 9]}") ", " DROP, "\"in 1\" drop proto tcp to any port 1-9\n", 1,
	 0, 0},
	{"", MARK ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", PORT("22") ", " MARK ", " ACCEPT, "\"in 1\" pass proto tcp to any port 22\n", 0, 1, 0},
	{"", PORT("\"telnet-word\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", PORT("\"@missing\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", PORT("70000") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", MATCH("==", CT("state"), "\"established\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	// Weir's `established` has more packets
	{"", MATCH("==", CT("state"), "\"established\"") ", " ACCEPT, "\"in 1\" pass established\n",
	 0, 1, 0},
	{"", MATCH("!", CT("state"), "\"established\"") ", " ACCEPT,
	 "# passes more than the original: in 1", 0, 1, 0},
	{"", MATCH("!", CT("status"), "\"dnat\"") ", " ACCEPT, "default pass", 0, 1, 0},
	// without the ruleset, all packets may be new
	{"", MATCH("==", CT("state"), "\"established\"") ", " ACCEPT,
	 "# Without it (systemctl stop nftables, ", 0, 1, 0},
	{"", MATCH("!=", CT("state"), "\"established\"") ", " PORT("22") ", " DROP,
	 "# Without it (systemctl stop nftables, ", 0, 1, 0},
	{RULE("in", MATCH("==", CT("state"), "\"established\"") ", " ACCEPT) ", ", ACCEPT,
	 "!# Without it", 1, 1, 0},
	{"", PORT("22") ", " ACCEPT, "!# Without it", 1, 0, 0},
	// and its `not established` fewer
	{"", MATCH("!=", CT("state"), "\"established\"") ", " PORT("22") ", " DROP,
	 "\"in 1\" drop not established proto tcp to any port 22\n", 0, 1, 0},
	{"", MATCH("!", CT("state"), "[\"established\", \"related\"]") ", " DROP,
	 "\"in 1\" drop not established proto tcp, udp\n# left to nft: in 1", 0, 0, 1},
	{"",
	 MATCH("!=", CT("state"),
	       "{\"set\": [\"established\", \"related\"]}") ", " PORT("22") ", " DROP,
	 "\"in 1\" drop not established proto tcp to any port 22\n", 0, 1, 0},
	{"", MATCH("!=", CT("state"), "[\"established\", \"related\"]") ", " DROP, "!\"in 1\"", 0,
	 0, 1},
	{"", MATCH("!=", CT("state"), "\"related\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", MATCH("!", CT("state"), "[\"established\", \"new\"]") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{RULE("in", MATCH("in", CT("state"), "\"established\"") ", " ACCEPT) ", ",
	 MATCH("!", CT("state"), "\"established\"") ", " PORT("22") ", " DROP,
	 "\"in 2\" drop not established", 0, 2, 0},
	// packets are put together before they are measured
	{"", MATCH("<", META("length"), "500") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", MATCH(">", PAYLOAD("ip", "length"), "500") ", " ACCEPT, "default pass", 0, 1, 0},
	{"",
	 MATCH("==", "{\"&\": [" PAYLOAD("tcp", "flags") ", [\"psh\", \"ack\"]]}",
	       "\"ack\"") ", " DROP,
	 "!\"in 1\"", 0, 0, 1},
	{"",
	 MATCH("==", "{\"&\": [" PAYLOAD("tcp", "flags") ", [\"psh\", \"ack\"]]}",
	       "[\"psh\", \"ack\"]") ", " ACCEPT,
	 "\"in 1\" pass proto tcp flags ack/ack\n", 0, 1, 0},
	// a header that is not the last
	{"", MATCH("!=", PAYLOAD("ip6", "nexthdr"), "\"tcp\"") ", " ACCEPT,
	 "\"IPv6\" pass from ::/0\n", 0, 1, 0},
	{"", MATCH("==", PAYLOAD("ip6", "nexthdr"), "0") ", " ACCEPT, "\"IPv6\" pass from ::/0\n",
	 0, 1, 0},
	{"", MATCH("==", PAYLOAD("ip6", "nexthdr"), "\"udp\"") ", " ACCEPT,
	 "\"in 1\" pass proto udp from ::/0\n", 0, 1, 0},
	// a name is one device, not a pattern for lo
	{"", MATCH("==", META("iifname"), "\"l*\"") ", " ACCEPT, "default pass", 0, 1, 0},
	{"", MATCH("==", META("iifname"), "\"lo\"") ", " ACCEPT, "default drop", 0, 0, 0},
	// a target that is not known may accept
	{"", PORT("22") ", {\"xt\": {\"type\": \"target\", \"name\": \"NFQUEUE\"}}",
	 "\"in 1\" pass proto tcp to any port 22\n", 0, 1, 0},
	{"", PORT("22") ", {\"xt\": {\"type\": \"target\", \"name\": \"NFLOG\"}}", "!\"in 1\"", 0,
	 0, 0},
	{"", PORT("22") ", {\"synproxy\": null}", "\"in 1\" pass proto tcp to any port 22\n", 1, 0,
	 0},
	// never reached, and reached twice
	{RULE("in", ACCEPT) ", ", PORT("22") ", " DROP, "default pass", 1, 0, 0},
	{RULE("sub", PORT("22") ", " DROP) ", " RULE("in",
						     "{\"jump\": {\"target\": \"sub\"}}") ", ",
	 "{\"jump\": {\"target\": \"sub\"}}", "\"sub 1\" drop proto tcp to any port 22\n", 1, 0, 0},
	{CHAIN("inet", "a\\\"b", "") ", " RULE("a\\\"b", PORT("22") ", " DROP) ", ",
	 "{\"jump\": {\"target\": \"a\\\"b\"}}", "\"a_b 1\" drop proto tcp", 1, 0, 0},
	{CHAIN("inet", "a\\nb", "") ", " RULE("a\\nb", MARK ", " DROP) ", ",
	 "{\"jump\": {\"target\": \"a\\nb\"}}", "# left to nft: a_b 1: meta mark 1 drop\n", 0, 0,
	 1},
};

// Weir charges packets that nft refuses: a pass loses its rate, and a drop is left to nft.
static const struct one_rule rates[] = {
	{"", PORT("22") ", " SYN ", " OVER ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", SYN ", " LIMIT("") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", SYN ", " OVER ", " ACCEPT, NO_RATE, 0, 1, 0},
	{"", SYN ", " LIMIT("") ", " ACCEPT, NO_RATE, 0, 1, 0},
	{"", SYN ", " LIMIT("") ", " ACCEPT, "! under ", 0, 1, 0},
	{SEEN(""), SYN ", " METER("add", "20", "") ", " ACCEPT,
	 "\"in 1\" pass proto tcp from 0.0.0.0/0 flags syn/syn,ack\n", 0, 1, 0},
	{SEEN(""), SYN ", " METER("add", "20", INVERTED) ", " DROP, "!\"in 1\"", 0, 0, 1},
	// Weir counts sockets, and nft entries of connection tracking
	{"", SYN ", {\"ct count\": {\"val\": 3, \"inv\": true}}, " DROP, "!\"in 1\"", 0, 0, 1},
	{SEEN(""),
	 SYN ", {\"set\": {\"op\": \"add\", \"elem\": " PAYLOAD(
		 "ip",
		 "saddr") ", \"set\": \"@seen\", \"stmt\": [{\"ct count\": {\"val\": 3, \"inv\": true}}]}}, " DROP,
	 "!\"in 1\"", 0, 0, 1},
	{"", SYN ", {\"ct count\": {\"val\": 3}}, " ACCEPT, NO_RATE, 0, 1, 0},
};

#define TIMED(flags)                                                   \
	SET("s", "ipv4_addr",                                          \
	    flags ", \"elem\": [\"192.0.2.1\", {\"elem\": {\"val\": "  \
		  "\"192.0.2.9\", \"timeout\": 60, \"expires\": 9}}]") \
	", "
#define UNTIL(end, clock) "--for $((" end "-$(date +%s)))s # until 2026-01-01 00:" clock " UTC\n"
#define SADDR(op)         MATCH(op, PAYLOAD("ip", "saddr"), "\"@s\"")
#define VMAP(key, data)   "{\"vmap\": {\"key\": " key ", \"data\": " data "}}"
#define MAP(flags)                                                                       \
	"{\"map\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"m\", \"type\": " \
	"\"inet_service\", \"map\": \"verdict\"" flags ", \"elem\": [[22, {\"drop\": null}]]}}, "

#define FILLED                                                        \
	RULE("sub", "{\"set\": {\"op\": \"add\", \"elem\": " PAYLOAD( \
			    "ip", "saddr") ", \"set\": \"@s\"}}")     \
	", "
#define EIGHT(m)    m("a") m("b") m("c") m("d") m("e") m("f") m("g") m("h")
#define SHORT(name) SET(name, "ipv4_addr", ", \"flags\": \"timeout\"") ", "
#define USED(name)  RULE("in", MATCH("==", PAYLOAD("ip", "saddr"), "\"@" name "\"") ", " DROP) ", "
#define PORTS       SET("web", "inet_service", ", \"elem\": [80, {\"range\": [8000, 8100]}]") ", "

#define ETHER(op, right) MATCH(op, PAYLOAD("ether", "saddr"), right)
#define M1               "\"02:00:5e:00:53:01\""

static const struct one_rule macs[] = {
	{"", ETHER("==", M1) ", " DROP, "\"in 1\" drop mac 02:00:5e:00:53:01\n", 1, 0, 0},
	{"", ETHER("==", M1) ", " DROP,
	 "expect drop via \"in 1\" tcp from 203.0.113.9 to self mac 02:00:5e:00:53:01\n", 1, 0, 0},
	{"",
	 ETHER("==", "{\"range\": [" M1 ", \"02:00:5e:00:53:ff\"]}") ", " PORT("22") ", " ACCEPT,
	 "\"in 1\" pass proto tcp to any port 22 mac 02:00:5e:00:53:01-02:00:5e:00:53:ff\n", 1, 0,
	 0},
	{"", ETHER("!=", M1) ", " DROP,
	 "\"in 1\" drop mac 00:00:00:00:00:00-02:00:5e:00:53:00, 02:00:5e:00:53:02-ff:ff:ff:ff:ff:ff\n",
	 1, 0, 0},
	{SET("phones", "ether_addr", ", \"elem\": [" M1 "]") ", ",
	 ETHER("==", "\"@phones\"") ", " ACCEPT, "set phones macs { 02:00:5e:00:53:01 }\n", 1, 0,
	 0},
	{"", ETHER("==", "\"02:00:5e\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{"", ETHER("==", "5") ", " DROP, "!\"in 1\"", 0, 0, 1},
	// rewritten, of another packet of the connection, or not the source
	{RULE("sub",
	      "{\"mangle\": {\"key\": " PAYLOAD("ether", "saddr") ", \"value\": " M1 "}}") ", ",
	 ETHER("==", M1) ", " DROP, "!\"in 1\"", 0, 0, 1},
	{RULE("pre", PORT("22") ", " ETHER("==", M1) ", {\"redirect\": {\"port\": 80}}") ", ", DROP,
	 "\"pre 1\" pass proto tcp to any port 22\n", 1, 1, 0},
	{RULE("in", MATCH("in", CT("state"), "\"established\"") ", " ACCEPT) ", ",
	 ETHER("==", M1) ", " DROP, "\"in 2\" drop proto tcp, udp mac 02:00:5e:00:53:01\n", 0, 1,
	 1},
	{"", MATCH("==", PAYLOAD("ether", "daddr"), M1) ", " DROP, "!\"in 1\"", 0, 0, 1},
};

static const struct one_rule sets[] = {
	{TIMED(", \"flags\": [\"timeout\"]"), SADDR("==") ", " DROP,
	 "\"in 1\" drop from 192.0.2.1\n\"in 1 (2)\" drop from @nft-s to 0.0.0.0/0\n"
	 "# passes more than the original: in 1: ip saddr @s drop\n",
	 0, 1, 0},
	{TIMED(", \"flags\": \"timeout\""), SADDR("==") ", " DROP,
	 "# weir block --set nft-s 192.0.2.9 " UNTIL("1767225609", "00:09") "set nft-s dynamic\n",
	 0, 1, 0},
	{TIMED(""), SADDR("==") ", " DROP, "drop from @nft-s to 0.0.0.0/0\n", 0, 1, 0},
	{TIMED(", \"timeout\": 60, \"size\": 9"), SADDR("==") ", " DROP,
	 "# weir block --set nft-s 192.0.2.1 " UNTIL(
		 "1767225660",
		 "01:00") "# weir block --set nft-s 192.0.2.9 " UNTIL("1767225609",
								      "00:09") "set nft-s dynamic max 9 expire 60s\n",
	 0, 1, 0},
	// a dynamic set can never have prefixes, but the rule is there for the addresses
	{TIMED(", \"flags\": [\"interval\", \"timeout\"]"), SADDR("==") ", " DROP,
	 "drop from @nft-s to 0.0.0.0/0\n# passes more than the original: in 1", 0, 1, 0},
	// not the entries of a set with the original name
	{TIMED(", \"timeout\": 60"), SADDR("==") ", " DROP, "!set s dynamic", 0, 1, 0},
	{TIMED(", \"timeout\": 60"), SADDR("==") ", " DROP,
	 "# '@nft-s' is empty, unless the active policy has it: ", 0, 1, 0},
	// less than a second is left
	{SET("s", "ipv4_addr",
	     ", \"timeout\": 60, \"elem\": [{\"elem\": {\"val\": \"192.0.2.1\", \"expires\": 0}}]") ", ",
	 SADDR("==") ", " DROP, "# weir block --set nft-s 192.0.2.1 " UNTIL("1767225601", "00:01"),
	 0, 1, 0},
	// the commands are for a shell
	{SET("s", "ipv4_addr", ", \"timeout\": 60, \"elem\": [\"192.0.2.1;$(reboot)`x`\"]") ", ",
	 SADDR("==") ", " DROP, "# weir block --set nft-s 192.0.2.1___reboot__x_ --for", 0, 1, 0},
	{TIMED(", \"timeout\": 60"),
	 MATCH("==", PAYLOAD("ip", "daddr"), "\"@s\"") ", " PORT("22") ", " DROP,
	 "\"in 1\" drop proto tcp from 0.0.0.0/0 to @nft-s port 22\n", 0, 1, 0},
	{TIMED(", \"timeout\": 60"), SADDR("==") ", " PORT("22") ", " DROP,
	 "\"in 1\" drop proto tcp from @nft-s to 0.0.0.0/0 port 22\n", 0, 1, 0},
	// one item for each address, and one family
	{TIMED(", \"timeout\": 60"),
	 SADDR("==") ", " MATCH("==", PAYLOAD("ip", "saddr"), "\"192.0.2.9\"") ", " DROP,
	 "!\"in 1\"", 0, 0, 1},
	{TIMED(", \"timeout\": 60"), MATCH("==", PAYLOAD("ip6", "saddr"), "\"@s\"") ", " DROP,
	 "!\"in 1\"", 0, 0, 1},
	// rules fill the set, or the policy has eight others
	{TIMED(", \"flags\": \"timeout\"") FILLED, SADDR("==") ", " DROP,
	 "\"in 1\" drop from 192.0.2.1\n", 0, 0, 1},
	{TIMED(", \"flags\": \"timeout\"") EIGHT(SHORT) EIGHT(USED), SADDR("==") ", " DROP,
	 "\"in 9\" drop from 192.0.2.1\n# left to nft: in 9", 0, 8, 1},
	{TIMED(", \"flags\": \"timeout\""), SADDR("!=") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{TIMED(", \"flags\": \"timeout\""), SADDR("==") ", " ACCEPT,
	 "\"IPv4\" pass from 0.0.0.0/0\n", 0, 1, 0},
	{TIMED(", \"flags\": \"timeout\""), SADDR("==") ", {\"jump\": {\"target\": \"sub\"}}",
	 "!dynamic", 0, 0, 0},
	// ports
	{PORTS, PORT("\"@web\"") ", " ACCEPT, "\"in 1\" pass proto tcp to any port @web\n", 1, 0,
	 0},
	{PORTS, PORT("\"@web\"") ", " DROP, "set web ports { 80, 8000-8100 }\n", 1, 0, 0},
	{PORTS, MATCH("!=", PAYLOAD("tcp", "dport"), "\"@web\"") ", " DROP,
	 "\"in 1\" drop proto tcp to any port 0-79, 81-7999, 8101-65535\n", 1, 0, 0},
	{MAP(""), VMAP(PAYLOAD("tcp", "dport"), "\"@m\""),
	 "\"in 1\" drop proto tcp to any port 22\n", 1, 0, 0},
	// a map that changes may accept
	{MAP(", \"flags\": \"timeout\""), VMAP(PAYLOAD("tcp", "dport"), "\"@m\""), "default pass",
	 0, 1, 0},
	// "*" is last, and not for packets that return
	{"",
	 VMAP(PAYLOAD("tcp", "dport"),
	      "{\"set\": [[\"*\", {\"drop\": null}], [22, {\"accept\": null}]]}"),
	 "\"in 1\" pass proto tcp to any port 22\n", 1, 0, 0},
	{RULE("in", VMAP(PAYLOAD("tcp", "dport"),
			 "{\"set\": [[\"*\", {\"drop\": null}], [22, {\"jump\": {\"target\": "
			 "\"sub\"}}]]}")) ", ",
	 ACCEPT, "default pass", 1, 0, 1},
};

// Pairs of address and port.
#define PAIR(addr, port) "{\"concat\": [\"" addr "\", " port "]}"
#define TIMED_PAIR(addr) "{\"elem\": {\"val\": " PAIR(addr, "7") ", \"timeout\": 60}}"
#define PAIR_SET(flags, list)                                                            \
	"{\"set\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"p\", \"type\": " \
	"[\"ipv4_addr\", \"inet_service\"]" flags ", \"elem\": [" list "]}}, "
#define TWO               PAIR("192.0.2.1", "80") ", " PAIR("192.0.2.9", "{\"range\": [53, 99]}")
#define SIDE(a, b, right) MATCH("==", "{\"concat\": [" a ", " b "]}", right)
#define TO_PAIRS(right)   SIDE(PAYLOAD("ip", "daddr"), PAYLOAD("tcp", "dport"), right)
#define PREFIX            "{\"concat\": [{\"prefix\": {\"addr\": \"198.51.100.0\", \"len\": 24}}, 80]}"
#define TIMEOUTS          ", \"flags\": \"timeout\""

static const struct one_rule pairs[] = {
	{PAIR_SET("", TWO), TO_PAIRS("\"@p\"") ", " ACCEPT, "\"in 1\" pass proto tcp to @p\n", 1, 0,
	 0},
	{PAIR_SET("", TWO), TO_PAIRS("\"@p\"") ", " DROP,
	 "set p pairs {\n\t192.0.2.1 port 80,\n\t192.0.2.9 port 53-99\n}\n", 1, 0, 0},
	{"",
	 SIDE(PAYLOAD("udp", "sport"), PAYLOAD("ip", "saddr"),
	      "{\"set\": [{\"concat\": [53, \"192.0.2.1\"]}, {\"concat\": [54, \"192.0.2.1\"]}]}") ", " DROP,
	 "set list pairs {\n\t192.0.2.1 port 53-54\n}\n", 1, 0, 0},
	// one pair needs no set, and the ends differ
	{PAIR_SET("", PAIR("192.0.2.1", "80")), TO_PAIRS("\"@p\"") ", " DROP,
	 "\"in 1\" drop proto tcp to 192.0.2.1 port 80\n", 1, 0, 0},
	{PAIR_SET("", TWO),
	 SIDE(PAYLOAD("ip", "saddr"), PAYLOAD("tcp", "dport"), "\"@p\"") ", " DROP,
	 "\"in 1 (2)\" drop proto tcp from 192.0.2.9 to any port 53-99\n", 1, 0, 0},
	// prefixes have rules of their own, and a policy has one set on each side
	{PAIR_SET("", TWO ", " PREFIX), TO_PAIRS("\"@p\"") ", " DROP,
	 "\"in 1\" drop proto tcp to @list\n\"in 1 (2)\" drop proto tcp to 198.51.100.0/24 port 80\n",
	 1, 0, 0},
	{PAIR_SET("", TWO),
	 TO_PAIRS("\"@p\"") ", " MATCH("==", PAYLOAD("ip", "daddr"), "\"192.0.2.9\"") ", " DROP,
	 "set list pairs {\n\t192.0.2.9 port 53-99\n}\n", 1, 0, 0},
	{PAIR_SET("", TWO),
	 MATCH("<", PAYLOAD("tcp", "dport"), "60") ", " TO_PAIRS("\"@p\"") ", " DROP,
	 "set list pairs {\n\t192.0.2.9 port 53-59\n}\n", 1, 0, 0},
	{PAIR_SET("", TWO),
	 TO_PAIRS("\"@p\"") ", " TO_PAIRS("{\"set\": [" PAIR("192.0.2.1", "80") ", " PAIR(
		 "192.0.2.9", "99") ", " PAIR("192.0.2.7", "80") "]}") ", " DROP,
	 "set list pairs {\n\t192.0.2.1 port 80,\n\t192.0.2.9 port 99\n}\n", 1, 0, 0},
	{PAIR_SET("", TWO), TO_PAIRS("\"@p\"") ", " PORT("22") ", " DROP, "!\"in 1\"", 0, 0, 0},
	// other protocols have ports too
	{PAIR_SET("", TWO),
	 SIDE(PAYLOAD("ip", "daddr"), PAYLOAD("th", "dport"), "\"@p\"") ", " ACCEPT,
	 "\"in 1\" pass to 192.0.2.1, 192.0.2.9\n", 0, 1, 0},
	{PAIR_SET("", TWO),
	 SIDE(PAYLOAD("ip", "daddr"), PAYLOAD("th", "dport"), "\"@p\"") ", " DROP,
	 "\"in 1\" drop proto tcp, udp, sctp to @p\n", 0, 0, 1},
	// a drop has the elements that stay
	{PAIR_SET(TIMEOUTS, TWO ", " TIMED_PAIR("192.0.2.3")), TO_PAIRS("\"@p\"") ", " DROP,
	 "\"in 1\" drop proto tcp to @list\n# left to nft: in 1", 0, 0, 1},
	{PAIR_SET(TIMEOUTS, TWO), TO_PAIRS("\"@p\"") ", " ACCEPT, "default pass\n", 0, 1, 0},
	{PAIR_SET("", TWO ", " TIMED_PAIR("192.0.2.3")), TO_PAIRS("\"@p\"") ", " ACCEPT, "!pairs",
	 0, 1, 0},
	{PAIR_SET("", PAIR("192.0.2.1", "80") ", " TIMED_PAIR("192.0.2.3")),
	 TO_PAIRS("\"@p\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{PAIR_SET(", \"timeout\": 60", TWO), TO_PAIRS("\"@p\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{PAIR_SET("", TWO) RULE(
		 "sub",
		 "{\"set\": {\"op\": \"delete\", \"elem\": {\"concat\": [" PAYLOAD(
			 "ip", "saddr") ", " PAYLOAD("tcp", "sport") "]}, \"set\": \"@p\"}}") ", ",
	 TO_PAIRS("\"@p\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{PAIR_SET("", TWO ", " PAIR("2001:db8::1", "80") ", \"x\""), TO_PAIRS("\"@p\"") ", " DROP,
	 "\"in 1\" drop proto tcp to @list\n", 0, 0, 1},
	{"",
	 MATCH("!=", "{\"concat\": [" PAYLOAD("ip", "daddr") ", " PAYLOAD("tcp", "dport") "]}",
	       "{\"set\": [" TWO "]}") ", " DROP,
	 "!\"in 1\"", 0, 0, 1},
};

// Chains and objects that change what the hook sees.
static const struct one_rule others[] = {
	{"{\"ct expectation\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"e\"}}, ",
	 MATCH("==", CT("state"), "\"related\"") ", " ACCEPT, "default pass", 0, 1, 0},
	{RULE("sub", "{\"ct expectation\": \"e\"}") ", ",
	 MATCH("==", CT("state"), "\"related\"") ", " ACCEPT, "default pass", 0, 1, 0},
	{"{\"ct helper\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"ftp\"}}, ",
	 MATCH("==", CT("state"), "\"related\"") ", " ACCEPT, "default pass", 0, 1, 0},
	{"{\"ct helper\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"ftp\"}}, ",
	 MATCH("!", CT("state"), "[\"established\", \"related\"]") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{RULE("sub", "{\"mangle\": {\"key\": {\"ct\": {\"key\": \"zone\"}}, \"value\": 1}}") ", ",
	 MATCH("!=", CT("state"), "\"established\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	{RULE("sub", "{\"notrack\": null}") ", ",
	 MATCH("==", CT("state"), "\"untracked\"") ", " ACCEPT, "default pass", 0, 1, 0},
	{RULE("sub", "{\"mangle\": {\"key\": {\"ct\": {\"key\": \"zone\"}}, \"value\": 1}}") ", ",
	 MATCH("==", CT("state"), "\"established\"") ", " ACCEPT, "default pass", 0, 1, 0},
	{RULE("sub", "{\"mangle\": {\"key\": " PAYLOAD("ip", "ttl") ", \"value\": 9}}") ", ",
	 MATCH("==", PAYLOAD("ip", "ttl"), "9") ", " ACCEPT, "\"IPv4\" pass from 0.0.0.0/0\n", 0, 1,
	 0},
	{RULE("sub", "{\"mangle\": {\"key\": " PAYLOAD("ip", "dscp") ", \"value\": 9}}") ", ",
	 MATCH("==", PAYLOAD("ip", "dscp"), "9") ", " DROP, "!\"in 1\"", 0, 0, 1},
	// the first packet of a connection decides
	{RULE("pre", SYN ", {\"redirect\": {\"port\": 80}}") ", ", DROP,
	 "\"pre 1\" pass proto tcp\n", 1, 1, 0},
	{"", DROP, "\"to other hosts\" pass to not self\n", 1, 0, 0},
	{"", DROP, "malformed pass", 1, 0, 0},
	{"", DROP, "\"AH\" pass proto ah from ::/0\n", 1, 0, 0},
};

static void test_rules(void **state)
{
	const struct import_options options = {.source = "JSON", .now_s = NOW};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		test_one(&rules[i], &options);
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		test_one(&rates[i], &options);
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		test_one(&sets[i], &options);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		test_one(&pairs[i], &options);
	for (size_t i = 0; i < ARRAY_SIZE(macs); i++)
		test_one(&macs[i], &options);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		test_one(&others[i], &options);
}

// near0 is below near0.10 and br0, eth1 is not.
static void test_devices(void **state)
{
	static const struct import_device around[] = {
		{"near0", 1}, {"near0.10", 1}, {"br0", 3}, {"near1", 2}, {"eth1", 0}};
	static const char *const both[] = {"near0", "near1"};
	const struct import_options options = {.source = "JSON",
					       .interfaces = both,
					       .n_interfaces = 2,
					       .devices = around,
					       .n_devices = ARRAY_SIZE(around)};
	static const struct one_rule cases[] = {
		{"", MATCH("==", META("iifname"), "\"eth1\"") ", " ACCEPT, "!\"in 1\"", 0, 0, 0},
		{"", MATCH("!=", META("iifname"), "\"eth1\"") ", " ACCEPT, "default pass", 1, 0, 0},
		{"", MATCH("==", META("iifname"), "\"near0\"") ", " ACCEPT,
		 "\"in 1\" pass on near0\n", 0, 1, 0},
		{"", MATCH("!=", META("iifname"), "\"near0\"") ", " ACCEPT, "default pass", 0, 1,
		 0},
		{"", MATCH("==", META("iifname"), "\"near0.10\"") ", " ACCEPT,
		 "\"in 1\" pass on near0\n", 0, 1, 0},
		{"", MATCH("==", META("iifname"), "\"br0\"") ", " ACCEPT, "default pass", 0, 1, 0},
		{"", MATCH("==", META("iifname"), "\"near0\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
		{"", MATCH("!=", META("iifname"), "\"near0\"") ", " DROP,
		 "\"in 1\" drop on near1\n", 0, 0, 1},
		{"", MATCH("!=", META("iifname"), "\"eth1\"") ", " DROP, "default drop", 1, 0, 0},
		{"",
		 MATCH("==", META("iifname"),
		       "{\"set\": [\"near0\", \"near0.10\", \"br0\"]}") ", " DROP,
		 "\"in 1\" drop on near0\n", 0, 0, 1},
		// it may be made later
		{"", MATCH("==", META("iifname"), "\"vlan7\"") ", " ACCEPT, "default pass", 0, 1,
		 0},
		{"", MATCH("==", META("iifname"), "\"eth*\"") ", " ACCEPT, "default pass", 0, 1, 0},
		{"", MATCH("!=", META("iifname"), "\"vlan7\"") ", " DROP, "!\"in 1\"", 0, 0, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		test_one(&cases[i], &options);
}

// A router counts the TTL down first, and receives broadcasts itself.
static void test_forward(void **state)
{
	static const char *const broadcasts[] = {"192.0.2.255", "2001:db8::"};
	const struct import_options options = {
		.source = "JSON", .forward = true, .broadcasts = broadcasts, .n_broadcasts = 2};
	static const char *const forward =
		CHAIN("inet", "fw", BASE("filter", "forward", "drop")) ", " CHAIN(
			"inet", "f2",
			BASE("filter", "forward",
			     "accept")) ", " RULE("fw", MATCH("==", PAYLOAD("ip", "ttl"),
							      "9") ", " ACCEPT) ", ";
	static const char *const table = CHAIN(
		"inet", "fw",
		BASE("filter", "forward",
		     "drop")) ", "
			      "{\"flowtable\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"f\"}}, ";
	const struct one_rule cases[] = {
		{forward, ACCEPT, "\"IPv4\" pass from 0.0.0.0/0\n", 0, 1, 0},
		{forward, ACCEPT, "ff00::/8, 192.0.2.255, 2001:db8::\n", 0, 1, 0},
		{table, ACCEPT, "\"flow table\" pass established\n", 0, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		test_one(&cases[i], &options);
}

static void test_source_on_one_line(void **state)
{
	const struct import_options options = {.source = "a\nb\x1b"};
	static const char *const json = CHAINS TAIL;
	CLEANUP_TEXT struct text got = {0};
	struct import_counts n = {0};
	struct err err = {0};

	assert_int_equal(import_nft(json, strlen(json), &options, &got, &n, &err), 0);
	assert_true(!strncmp(got.at, "# from a?b?, hook input, by weir import\n# ", 42));
}

// ---- bad input ----------------------------------------------------------------------------------

static const struct {
	const char *json, *message;
} bad[] = {
	{"", "not JSON: line 1"},
	{"{\"nftables\": [\n{\"chain\"", "not JSON: line 2"},
	{"[]", "no array 'nftables'"},
	{"{\"nftables\": []}", "no chain of type filter and hook input"},
	{"{\"nftables\": [{\"chain\": {\"family\": \"arp\", \"table\": \"t\", \"name\": \"in\", "
	 "\"type\": \"filter\", \"hook\": \"input\"}}]}",
	 "no chain of type filter and hook input"},
	{"{\"nftables\": [3]}", "object 1 of the ruleset"},
	{"{\"nftables\": [{\"chain\": {\"family\": \"ip\"}}]}", "object 1 is a chain without"},
	{"{\"nftables\": [{\"rule\": {\"family\": \"ip\"}}]}", "object 1 is a rule without"},
	{"{\"nftables\": [{\"rule\": {\"family\": \"ip\", \"table\": \"t\", \"chain\": \"x\", "
	 "\"expr\": []}}]}",
	 "object 1 is a rule of chain 'x'"},
	{CHAINS ", " RULE("in", "{\"jump\": {\"target\": \"none\"}}") TAIL,
	 "in 1 of table 't': no chain 'none'"},
	{CHAINS ", " RULE("in", "{\"jump\": {\"target\": \"in\"}}") TAIL,
	 "too many calls of chains"},
	{CHAINS ", " RULE("sub", "{\"mangle\": {\"key\": " PAYLOAD("ip", "daddr") ", \"value\": "
										  "\"192.0.2.1\"}}")
		 TAIL,
	 "rule 1 of chain 'sub' rewrites the daddr"},
};

static void fails_soon(const struct text *json, const char *message)
{
	const struct import_options options = {.source = "JSON"};
	CLEANUP_TEXT struct text got = {0};
	struct import_counts n = {0};
	struct err err = {0};
	uint64_t start = time_ms(CLOCK_THREAD_CPUTIME_ID);

	assert_true(import_nft(json->at, json->len, &options, &got, &n, &err) < 0);
	assert_non_null(strstr(err.text, message));
	assert_in_range(time_ms(CLOCK_THREAD_CPUTIME_ID) - start, 0, 20000); // with ASan
}

// Each chain calls the next one ten times; and each of many base chains accepts ten ports.
static void test_too_much_work(void **state)
{
	CLEANUP_TEXT struct text calls = {0}, bases = {0};

	text_add(&calls, CHAINS);
	for (int i = 0; i <= 14; i++)
		text_addf(&calls, ", " CHAIN("inet", "c%d", ""), i);
	for (int i = 0; i < 14 * 10; i++)
		text_addf(&calls, ", " RULE("c%d", "{\"jump\": {\"target\": \"c%d\"}}"), i / 10,
			  i / 10 + 1);
	text_add(&calls, ", " RULE("in", "{\"jump\": {\"target\": \"c0\"}}") TAIL);
	fails_soon(&calls, "too large");
	text_add(&bases, CHAINS);
	for (int i = 0; i < 40; i++)
		text_addf(&bases, ", " CHAIN("inet", "b%d", BASE("filter", "input", "drop")), i);
	text_add(&bases, TAIL);
	fails_soon(&bases, "at most 16 chains");
	text_free(&bases);
	text_add(&bases, CHAINS);
	for (int i = 0; i < 12; i++)
		text_addf(&bases, ", " CHAIN("inet", "b%d", BASE("filter", "input", "drop")), i);
	for (int i = 0; i < 120; i++)
		text_addf(&bases, ", " RULE("b%d", MARK ", " ACCEPT), i / 10);
	text_add(&bases, ", " RULE("in", ACCEPT) TAIL);
	fails_soon(&bases, "too large");
}

// Sets of one name, more than there are numbers in three digits.
static void test_many_sets(void **state)
{
	const struct import_options options = {.source = "JSON"};
	CLEANUP_TEXT struct text json = {0}, got = {0};
	struct import_counts n = {0};
	struct err err = {0};

	text_add(&json, CHAINS);
	for (int i = 0; i < 1100; i++) {
		text_add(&json,
			 ", {\"rule\": {\"family\": \"inet\", \"table\": \"t\", \"chain\": "
			 "\"in\", \"expr\": [{\"match\": {\"op\": \"==\", \"left\": " PAYLOAD(
				 "ip", "saddr") ", \"right\": {\"set\": [");
		for (int k = 0; k < 20; k++)
			text_addf(&json, "%s\"10.%d.%d.%d\"", k ? ", " : "", i / 250, i % 250,
				  k * 2);
		text_add(&json, "]}}}, " DROP "]}}");
	}
	text_add(&json, TAIL);
	assert_int_equal(import_nft(json.at, json.len, &options, &got, &n, &err), 0);
	assert_non_null(strstr(got.at, "set list-1100 {"));
	assert_int_equal(n.translated, 1100);
}

static void test_bad_input(void **state)
{
	const struct import_options options = {.source = "JSON"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP_TEXT struct text got = {0};
		struct import_counts n = {0};
		struct err err = {0};

		assert_true(import_nft(bad[i].json, strlen(bad[i].json), &options, &got, &n, &err) <
			    0);
		if (!strstr(err.text, bad[i].message))
			fail_msg("%s: %s", bad[i].json, err.text);
		assert_int_equal(got.len, 0);
		assert_int_equal(n.translated + n.widened + n.omitted, 0);
	}
}

// Each beginning of a document is refused.
static void test_truncated(void **state)
{
	const struct import_options options = {.source = "JSON"};
	CLEANUP_FREE char *json = NULL;
	struct err err = {0};
	size_t len;

	assert_int_equal(file_read(FOLDER "maps.json", FILE_LIMIT, &json, &len, &err), 0);
	while (len && json[len - 1] != '}')
		len--;
	for (size_t n = 0; n < len; n += 7) {
		CLEANUP_TEXT struct text got = {0};
		struct import_counts counts = {0};

		assert_true(import_nft(json, n, &options, &got, &counts, &err) < 0);
		assert_true(!strncmp(err.text, "not JSON: line ", 15) && !got.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_source_on_one_line),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_too_much_work),
		cmocka_unit_test(test_many_sets),
		cmocka_unit_test(test_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
