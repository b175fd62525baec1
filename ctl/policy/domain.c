// SPDX-License-Identifier: GPL-2.0-only
// The domains: how their words are read and printed.
#include "ctl/policy/domain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/resolved.h"

#define SHOWN_MAX 60

// ---- lists of other things than numbers ---------------------------------------------------------

const struct domain domain_define = {
	.item = "a value",
	.keywords = {"any", "self", "http", "https", "tcp", "udp", "ipip", "redirect", "none"},
};

const struct domain domain_address = {
	.item = "an address",
	.expected = "an address, a name or @set",
	.keywords = {"any", "self"},
};

const struct domain domain_pair = {.item = "an address and its port"};
const struct domain domain_flag = {.item = "a TCP flag"};
const struct domain domain_none = {.item = "nothing"}; // the field has no list

// ---- protocols ----------------------------------------------------------------------------------

static void read_proto(struct eval *e, const char *word)
{
	uint8_t proto;
	int code = names_proto(word, &proto);

	if (code == -ERANGE)
		eval_fail(e, "a protocol is 0 to 255", "'%.*s' is not a protocol", SHOWN_MAX, word);
	else if (code < 0)
		eval_unknown(e, word, names_nearest(NAMES_PROTOS, word));
	else
		eval_emit(e, proto, proto);
}

static void print_proto(struct text *t, const struct resolved *r, unsigned value)
{
	const char *name = names_of_proto((uint8_t)value);

	if (name)
		text_add(t, name);
	else
		text_addf(t, "%u", value);
}

const struct domain domain_proto = {
	.item = "a protocol",
	.keywords = {"tcp", "udp", "ipip"},
	.last = 255,
	.read = read_proto,
	.print = print_proto,
};

// ---- ICMP codes ---------------------------------------------------------------------------------

static void read_code(struct eval *e, const char *word)
{
	if (!eval_span(e, word, 255))
		eval_fail(e, "a code is a number", "'%.*s' is not an ICMP code", SHOWN_MAX, word);
}

const struct domain domain_code = {
	.item = "an ICMP code",
	.last = 255,
	.read = read_code,
};

// ---- VLANs --------------------------------------------------------------------------------------

static void read_vlan(struct eval *e, const char *word)
{
	if (!strcmp(word, "none"))
		eval_emit(e, 0, 0);
	else if (!eval_span(e, word, 4095))
		eval_fail(e, "a VLAN is a number, a span or none", "'%.*s' is not a VLAN",
			  SHOWN_MAX, word);
}

static void print_vlan(struct text *t, const struct resolved *r, unsigned value)
{
	if (value)
		text_addf(t, "%u", value);
	else
		text_add(t, "none");
}

const struct domain domain_vlan = {
	.item = "a VLAN",
	.expected = "a VLAN number or none",
	.keywords = {"none"},
	.first = 1, // "not 7" needs a packet that has a tag
	.last = 4095,
	.read = read_vlan,
	.print = print_vlan,
};

// ---- DSCP ---------------------------------------------------------------------------------------

// RFC 2474 section 4.2.2, RFC 2597 section 6, RFC 3246.
static const struct {
	const char *name;
	uint8_t value;
} dscps[] = {
	{"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},  {"cs4", 32},  {"cs5", 40},
	{"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18},
	{"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30}, {"af41", 34},
	{"af42", 36}, {"af43", 38}, {"ef", 46},
};

static void unknown_dscp(struct eval *e, const char *word)
{
	const char *names[ARRAY_SIZE(dscps)];

	for (size_t i = 0; i < ARRAY_SIZE(dscps); i++)
		names[i] = dscps[i].name;
	eval_unknown(e, word, diag_nearest(word, names, ARRAY_SIZE(names)));
}

static void read_dscp(struct eval *e, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(dscps); i++)
		if (!strcmp(dscps[i].name, word)) {
			eval_emit(e, dscps[i].value, dscps[i].value);
			return;
		}
	if (!eval_span(e, word, 63))
		unknown_dscp(e, word);
}

const struct domain domain_dscp = {
	.item = "a DSCP value",
	.last = 63,
	.read = read_dscp,
};

// ---- ethertypes ---------------------------------------------------------------------------------

static void read_ethertype(struct eval *e, const char *word)
{
	uint16_t values[2];
	size_t n = 0;
	uint32_t hex;

	if (!names_ethertype(word, values, &n)) {
		for (size_t i = 0; i < n; i++)
			eval_emit(e, values[i], values[i]);
		if (!n)
			eval_emit(e, 0, UINT16_MAX);
	} else if (strncmp(word, "0x", 2) != 0 && strncmp(word, "0X", 2) != 0) {
		eval_unknown(e, word, names_nearest(NAMES_ETHERTYPES, word));
	} else if (num_parse_hex32(word, strlen(word), &hex) < 0 || hex > UINT16_MAX) {
		eval_fail(e, "0x and up to four hexadecimal digits", "'%.*s' is not an ethertype",
			  SHOWN_MAX, word);
	} else if (hex < 0x600) { // IEEE 802.3 clause 3.2.6
		eval_fail(e, "numbers below 0x600 are lengths", "'%s' is not an ethertype", word);
	} else if (hex == 0x8100 || hex == 0x88a8) {
		eval_fail(e, "use vlan", "'%s' is a VLAN tag; match the ethertype that follows it",
			  word);
	} else {
		eval_emit(e, hex, hex);
	}
}

static void print_ethertype(struct text *t, const struct resolved *r, unsigned value)
{
	text_addf(t, "0x%04x", value);
}

const struct domain domain_ethertype = {
	.item = "an ethertype",
	.keywords = {"any"},
	.last = UINT16_MAX,
	.read = read_ethertype,
	.print = print_ethertype,
};

// ---- interfaces ---------------------------------------------------------------------------------

// The name itself, or a name that begins like the pattern "veth*".
static bool on_matches(const char *word, const char *name)
{
	size_t len = strlen(word);

	return !strcmp(word, name) ||
	       (len && word[len - 1] == '*' && !strncmp(word, name, len - 1));
}

static void read_on(struct eval *e, const char *word)
{
	const struct resolved *r = e->v->r;
	size_t found = 0;

	for (size_t i = 0; i < r->n_interfaces; i++)
		if (on_matches(word, r->interfaces[i].name)) {
			if (!(e->emitted[e->negated] >> i & 1))
				eval_emit(e, (uint32_t)i, (uint32_t)i);
			e->emitted[e->negated] |= (uint64_t)1 << i;
			found++;
		}
	if (!found)
		eval_fail(e, "'interface' lists them", "'%.*s' is not an interface of this policy",
			  SHOWN_MAX, word);
}

static void print_on(struct text *t, const struct resolved *r, unsigned value)
{
	text_add(t, value < r->n_interfaces ? r->interfaces[value].name : "?");
}

const struct domain domain_on = {
	.item = "an interface",
	.last = 63,
	.read = read_on,
	.print = print_on,
};

// ---- ports --------------------------------------------------------------------------------------

static const struct {
	unsigned number;
	const char *name;
} with_ports[] = {{PROTO_TCP, "tcp"}, {PROTO_UDP, "udp"}, {PROTO_SCTP, "sctp"}};

static void missing_port(struct eval *e, const char *word, const char *proto, const char *other)
{
	char hint[96];

	if (other) {
		snprintf(hint, sizeof(hint), "%s has one: write proto %s, or the number", other,
			 other);
		eval_fail(e, hint, "port '%.*s' has no number for %s in %s", SHOWN_MAX, word, proto,
			  e->v->services->path);
		return;
	}
	eval_fail(e, "a port is 0 to 65535, FIRST-LAST, or a name of /etc/services",
		  "'%.*s' is not a port", SHOWN_MAX, word);
}

// In a set: a rule determines the protocol, and so the number.
static void read_any_port_name(struct eval *e, const char *word)
{
	uint16_t port;

	for (size_t i = 0; i < ARRAY_SIZE(with_ports); i++)
		if (services_find(e->v->services, word, with_ports[i].name, &port) == 0) {
			eval_emit(e, port, port);
			return;
		}
	missing_port(e, word, NULL, NULL);
}

static void read_port_name(struct eval *e, const char *word)
{
	const char *missing = NULL, *has = NULL;
	uint16_t port = 0;
	bool differs = false;

	for (size_t i = 0; i < ARRAY_SIZE(with_ports); i++) {
		uint16_t n;

		if (!bits_has(e->v->protos, with_ports[i].number))
			continue;
		if (services_find(e->v->services, word, with_ports[i].name, &n) < 0) {
			missing = missing ? missing : with_ports[i].name;
			continue;
		}
		differs = differs || (has && n != port);
		has = has ? has : with_ports[i].name;
		port = n;
	}
	if (missing)
		missing_port(e, word, missing, has);
	else if (differs)
		eval_fail(e, "write a rule for each protocol",
			  "port '%s' has different numbers for these protocols", word);
	else
		eval_emit(e, port, port);
}

static void read_port(struct eval *e, const char *word)
{
	if (eval_span(e, word, UINT16_MAX))
		return;
	if (e->v->protos)
		read_port_name(e, word);
	else
		read_any_port_name(e, word);
}

const struct domain domain_port = {
	.item = "a port",
	.keywords = {"http", "https"},
	.sets = AST_SET_PORTS,
	.last = UINT16_MAX,
	.read = read_port,
};

// ---- MAC addresses ------------------------------------------------------------------------------

#define MAC_HINT "six pairs of hexadecimal digits, as 02:00:5e:00:53:01, or FIRST-LAST"

static void read_mac(struct eval *e, const char *word)
{
	const char *dash = strchr(word, '-');
	uint64_t first, last;

	if (mac_parse(word, dash ? (size_t)(dash - word) : strlen(word), &first) < 0 ||
	    mac_parse(dash ? dash + 1 : word, strlen(dash ? dash + 1 : word), &last) < 0)
		eval_fail(e, MAC_HINT, "'%.*s' is not a MAC address", SHOWN_MAX, word);
	else if (first > last)
		eval_fail(e, NULL, "'%.*s' ends before it begins", SHOWN_MAX, word);
	else
		eval_emit(e, first, last);
}

const struct domain domain_mac = {
	.item = "a MAC address",
	.sets = AST_SET_MACS,
	.last = MAC_LAST,
	.read = read_mac,
};

// ---- sets ---------------------------------------------------------------------------------------

const struct domain *const set_domains[AST_SET_KINDS] = {
	[AST_SET_ADDRESSES] = &domain_address,
	[AST_SET_PORTS] = &domain_port,
	[AST_SET_MACS] = &domain_mac,
	[AST_SET_PAIRS] = &domain_pair,
};
