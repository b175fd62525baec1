// SPDX-License-Identifier: GPL-2.0-only
// The tables of words.
#include "ctl/policy/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

struct number {
	const char *name;
	int value;
};

static const struct number protos[] = {
	{"tcp", PROTO_TCP},   {"udp", PROTO_UDP}, {"icmp", PROTO_ICMP}, {"icmp6", PROTO_ICMP6},
	{"sctp", PROTO_SCTP}, {"gre", 47},        {"esp", 50},          {"ah", 51},
	{"igmp", 2},          {"ipip", 4},        {"ip6", 41},          {"ospf", 89},
	{"pim", 103},         {"vrrp", 112},      {"udplite", 136},     {"dccp", 33},
};

// The names that nft and the RFCs use. Where both families have a type, one name means both.
static const struct number icmp4[] = {
	{"echo-reply", 0},           {"destination-unreachable", 3},
	{"source-quench", 4},        {"redirect", 5},
	{"echo-request", 8},         {"router-advertisement", 9},
	{"router-solicitation", 10}, {"time-exceeded", 11},
	{"parameter-problem", 12},   {"timestamp-request", 13},
	{"timestamp-reply", 14},     {"info-request", 15},
	{"info-reply", 16},          {"address-mask-request", 17},
	{"address-mask-reply", 18},
};

static const struct number icmp6[] = {
	{"destination-unreachable", 1},
	{"packet-too-big", 2},
	{"time-exceeded", 3},
	{"parameter-problem", 4},
	{"echo-request", 128},
	{"echo-reply", 129},
	{"mld-listener-query", 130},
	{"mld-listener-report", 131},
	{"mld-listener-done", 132},
	{"mld-listener-reduction", 132},
	{"router-solicitation", 133},
	{"nd-router-solicit", 133},
	{"router-advertisement", 134},
	{"nd-router-advert", 134},
	{"neighbour-solicitation", 135},
	{"neighbor-solicitation", 135},
	{"nd-neighbor-solicit", 135},
	{"neighbour-advertisement", 136},
	{"neighbor-advertisement", 136},
	{"nd-neighbor-advert", 136},
	{"redirect", 137},
	{"nd-redirect", 137},
	{"router-renumbering", 138},
	{"ind-neighbor-solicit", 141},
	{"ind-neighbor-advert", 142},
	{"mld2-listener-report", 143},
};

static const struct number flags[] = {
	{"fin", FLAG_FIN}, {"syn", FLAG_SYN}, {"rst", FLAG_RST}, {"psh", FLAG_PSH},
	{"ack", FLAG_ACK}, {"urg", FLAG_URG}, {"ece", FLAG_ECE}, {"cwr", FLAG_CWR},
};

static const struct {
	const char *name;
	size_t n;
	uint16_t values[2];
} ethertypes[] = {
	{"arp", 1, {0x0806}},           {"lldp", 1, {0x88cc}},
	{"eapol", 1, {0x888e}},         {"mpls", 2, {0x8847, 0x8848}},
	{"pppoe", 2, {0x8863, 0x8864}}, {"ipv4", 1, {0x0800}},
	{"ipv6", 1, {0x86dd}},          {"any", 0, {0}},
};

static const struct number *find(const struct number *table, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i].name, word))
			return &table[i];
	return NULL;
}

int names_proto(const char *word, uint8_t *ret)
{
	const struct number *found = find(protos, ARRAY_SIZE(protos), word);
	uint32_t n = found ? (uint32_t)found->value : 0;
	int code = found ? 0 : num_parse_u32(word, strlen(word), 0, 255, &n);

	if (code)
		return code;
	*ret = (uint8_t)n;
	return 0;
}

static const char *name_of(const struct number *table, size_t n, int value)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].value == value)
			return table[i].name;
	return NULL;
}

const char *names_of_proto(uint8_t proto)
{
	return name_of(protos, ARRAY_SIZE(protos), proto);
}

const char *names_of_icmp(uint8_t type, uint8_t family)
{
	return family == 4 ? name_of(icmp4, ARRAY_SIZE(icmp4), type)
			   : name_of(icmp6, ARRAY_SIZE(icmp6), type);
}

const char *names_of_flag(uint8_t flag)
{
	return name_of(flags, ARRAY_SIZE(flags), flag);
}

int names_icmp(const char *word, uint8_t family, uint8_t *ret)
{
	const struct number *found = family == 4 ? find(icmp4, ARRAY_SIZE(icmp4), word)
						 : find(icmp6, ARRAY_SIZE(icmp6), word);

	if (!found)
		return -ENOENT;
	*ret = (uint8_t)found->value;
	return 0;
}

bool names_is_neighbour_discovery(uint8_t icmp6_type)
{
	return icmp6_type >= 133 && icmp6_type <= 136;
}

int names_flag(const char *word, uint8_t *ret)
{
	const struct number *found = find(flags, ARRAY_SIZE(flags), word);

	if (!found)
		return -ENOENT;
	*ret = (uint8_t)found->value;
	return 0;
}

int names_ethertype(const char *word, uint16_t ret[2], size_t *ret_n)
{
	for (size_t i = 0; i < ARRAY_SIZE(ethertypes); i++) {
		if (strcmp(ethertypes[i].name, word) != 0)
			continue;
		memcpy(ret, ethertypes[i].values, sizeof(ethertypes[i].values));
		*ret_n = ethertypes[i].n;
		return 0;
	}
	return -ENOENT;
}

// The words of a table with elements of `size` bytes, whose first member is the name.
struct named_table {
	const void *table;
	size_t n, size;
};

static const char *word_at(const struct named_table *w, size_t i)
{
	const char *const *name = (const void *)((const char *)w->table + i * w->size);

	return *name;
}

#define WORDS(t)                                 \
	{                                        \
		t, ARRAY_SIZE(t), sizeof((t)[0]) \
	}

static const struct named_table tables[NAMES_TABLES][2] = {
	[NAMES_PROTOS] = {WORDS(protos)},
	[NAMES_ICMP] = {WORDS(icmp4), WORDS(icmp6)},
	[NAMES_FLAGS] = {WORDS(flags)},
	[NAMES_ETHERTYPES] = {WORDS(ethertypes)},
};

bool names_has(enum names_table table, const char *word)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables[0]); t++)
		for (size_t i = 0; i < tables[table][t].n; i++)
			if (!strcmp(word_at(&tables[table][t], i), word))
				return true;
	return false;
}

#define NEAREST_MAX 64

const char *names_nearest(enum names_table table, const char *word)
{
	const char *candidates[NEAREST_MAX];
	size_t n = 0;

	for (size_t t = 0; t < ARRAY_SIZE(tables[0]); t++)
		for (size_t i = 0; i < tables[table][t].n && n < NEAREST_MAX; i++)
			candidates[n++] = word_at(&tables[table][t], i);
	return diag_nearest(word, candidates, n);
}

#define TRACKING "begin with an action: pass established, drop not established"
#define HOURS    "a systemd timer with 'weir rule add' does this: weir-policy(5), HOURS"

// Words of nft, iptables, pf, ipset and of weir itself. Not sorted: they are looked up only after
// an error.
static const struct {
	const char *word, *statement, *in_rule;
} foreign[] = {
	{"accept", "write pass", "the action comes first: pass …"},
	{"allow", "write pass", "the action comes first: pass …"},
	{"permit", "write pass", "the action comes first: pass …"},
	{"block", "write drop", "the action comes first: drop …"},
	{"deny", "write drop", "the action comes first: drop …"},
	{"discard", "write drop", "the action comes first: drop …"},
	{"ban", "write drop", "the action comes first: drop …"},
	{"refuse", "write reject", "the action comes first: reject …"},
	{"counter", "write count", "every rule counts; to do nothing else, write count …"},
	{"policy", "write default pass or default drop", NULL},
	{"iface", "write interface", "write on"},
	{"dev", "write interface", "write on"},
	{"let", "write define", NULL},
	{"var", "write define", NULL},
	{"table", "Weir has no tables and chains: write rules; the first match wins", NULL},
	{"chain", "Weir has no tables and chains: write rules; the first match wins", NULL},
	{"list", "write set", NULL},
	{"ipset", "write set", NULL},
	{"backend", "it belongs in a service: service NAME { … }", NULL},
	{"vip", "it belongs in a service: service NAME { … }", NULL},
	{"src", "begin with an action: drop from …", "write from"},
	{"saddr", "begin with an action: drop from …", "write from"},
	{"source", "begin with an action: drop from …", "write from"},
	{"dst", "begin with an action: drop to …", "write to"},
	{"daddr", "begin with an action: drop to …", "write to"},
	{"dest", "begin with an action: drop to …", "write to"},
	{"destination", "begin with an action: drop to …", "write to"},
	{"from", "begin with an action: drop from …", NULL},
	{"if", "begin with an action: drop from …", NULL},
	{"when", "begin with an action: drop from …", NULL},
	{"rule", "omit it: a rule begins with its action", NULL},
	{"log", "begin with an action: count from … log", NULL},
	{"port", "begin with an action: drop to port …", NULL},
	{"established", TRACKING, NULL},
	{"to", "begin with an action: drop to …", NULL},
	{"proto", "begin with an action: drop proto …", NULL},
	{"dport", "begin with an action: drop to port …", "write to port, or to ADDRESS port"},
	{"dports", "begin with an action: drop to port …", "write to port, or to ADDRESS port"},
	{"sport", "begin with an action: drop from port …",
	 "write from port, or from ADDRESS port"},
	{"sports", "begin with an action: drop from port …",
	 "write from port, or from ADDRESS port"},
	{"tcp", "begin with an action: drop proto tcp …", "write proto tcp"},
	{"udp", "begin with an action: drop proto udp …", "write proto udp"},
	{"icmp", "begin with an action: drop proto icmp …", "write proto icmp"},
	{"icmp6", "begin with an action: drop proto icmp6 …", "write proto icmp6"},
	{"icmpv6", "begin with an action: drop proto icmp6 …", "write proto icmp6"},
	{"sctp", "begin with an action: drop proto sctp …", "write proto sctp"},
	{"gre", "begin with an action: drop proto gre …", "write proto gre"},
	{"protocol", "begin with an action: drop proto …", "write proto"},
	{"ip", "begin with an action: drop from …", "omit it: the addresses determine the family"},
	{"ip6", "begin with an action: drop from …", "omit it: the addresses determine the family"},
	{"in", NULL, "write on"},
	{"iif", NULL, "write on"},
	{"iifname", NULL, "write on"},
	{"interface", NULL, "write on"},
	{"limit", NULL, "write over RATE or under RATE"},
	{"connlimit", NULL, "write over 50 connections per source"},
	{"rate", NULL, "write over RATE or under RATE"},
	{"state", TRACKING, NULL}, // in a rule: parse_foreign.c
	{"ct", TRACKING, NULL},
	{"keep", NULL, "write established"},
	{"hour", HOURS, HOURS},
	{"hours", HOURS, HOURS},
	{"day", HOURS, HOURS},
	{"days", HOURS, HOURS},
	{"time", HOURS, HOURS},
	{"weekdays", HOURS, HOURS},
	{"timestart", HOURS, HOURS},
	{"l4proto", NULL, "write proto"},
	{"comment", NULL, "put a name first: \"NAME\" drop …; or write # after the rule"},
	{"ether", NULL, "write mac ADDRESS for a source, ethertype for a type"},
	{"fib", "write drop unroutable", "write unroutable"},
	{"rpfilter", "write drop unroutable", "write unroutable"},
	{"and", NULL, "leave it out: all fields of a rule must match"},
	{"or", NULL, "write a list with ',', or a second rule"},
};

const char *names_foreign(const char *word, bool in_rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (!strcmp(foreign[i].word, word))
			return in_rule ? foreign[i].in_rule : foreign[i].statement;
	return NULL;
}
