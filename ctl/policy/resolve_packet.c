// SPDX-License-Identifier: GPL-2.0-only
// Resolves the packet of an expect line as far as all packets of the line have it in common.
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/names.h"
#include "ctl/policy/resolver.h"

struct packet_work {
	struct resolver *r;
	const struct ast_expect *ast;
	struct resolved_packet *packet;
	bool ok;
};

#define fail(k, at, hint, ...) (diag_error((k)->r->diag, at, hint, __VA_ARGS__), (k)->ok = false)

// The interface that a device of this name is: the exact one, else the longest pattern.
static void read_on(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const struct resolved *r = k->r->r;
	size_t best = 0;
	bool found = false;

	for (size_t i = 0; a->on && i < r->n_interfaces; i++) {
		const char *name = r->interfaces[i].name;

		if (strcmp(name, a->on) != 0 && fnmatch(name, a->on, FNM_NOESCAPE) != 0)
			continue;
		if (found && strlen(name) < best && strcmp(name, a->on) != 0)
			continue;
		best = strcmp(name, a->on) != 0 ? strlen(name) : SIZE_MAX;
		k->packet->iface = (uint32_t)i;
		found = true;
	}
	if (a->on && !found)
		fail(k, a->on_at, "'interface' lists them",
		     "'%s' is not an interface of this policy", a->on);
}

static void read_frame(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	uint16_t values[2] = {0};
	uint32_t hex;
	size_t n = 0;

	if (!names_ethertype(a->ethertype, values, &n) && n)
		k->packet->ethertype = values[0];
	else if (!num_parse_hex32(a->ethertype, strlen(a->ethertype), &hex) && hex >= 0x600 &&
		 hex <= UINT16_MAX)
		k->packet->ethertype = (uint16_t)hex;
	else
		fail(k, a->ethertype_at, NULL, "'%s' is not %s ethertype", a->ethertype,
		     strcmp(a->ethertype, "any") ? "an" : "a single");
	if (k->packet->ethertype == 0x0800 || k->packet->ethertype == 0x86dd)
		fail(k, a->ethertype_at, "write from ADDRESS to ADDRESS",
		     "an IP packet needs 'from' and 'to'");
}

static bool is_icmp(uint8_t proto)
{
	return proto == PROTO_ICMP || proto == PROTO_ICMP6;
}

static void read_proto(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const char *near;

	k->packet->proto = a->type.given ? 0 : PROTO_TCP; // 0 with a type: as the family has it
	if (!a->proto || !names_proto(a->proto, &k->packet->proto))
		return;
	near = names_nearest(NAMES_PROTOS, a->proto);
	if (near)
		fail(k, a->proto_at, NULL, "'%s' is not a protocol, did you mean '%s'?", a->proto,
		     near);
	else
		fail(k, a->proto_at, NULL, "'%s' is not a protocol", a->proto);
}

static void read_type(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const char *word = a->type.given ? a->type.items.at[0].word : NULL;
	bool number;
	uint8_t type;

	if (!word)
		return;
	number = !num_parse_u32(word, strlen(word), 0, 255, &(uint32_t){0});
	if (a->proto && !is_icmp(k->packet->proto))
		fail(k, a->type.at, NULL, "'type' needs icmp or icmp6");
	else if (number && !a->proto)
		fail(k, a->type.at, "write icmp or icmp6",
		     "type number '%s' differs between ICMP and ICMPv6", word);
	else if (!number && (names_icmp(word, 4, &type) < 0 || k->packet->proto == PROTO_ICMP6) &&
		 (names_icmp(word, 6, &type) < 0 || k->packet->proto == PROTO_ICMP))
		fail(k, a->type.at, NULL, "'%.60s' is not an ICMP type%s", word,
		     a->proto ? " of this family" : "");
	k->packet->code = (uint8_t)a->code.value;
}

static void read_ports(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct diag_at at = a->sport.given ? a->sport.at : a->dport.at;
	uint8_t proto = k->packet->proto;
	bool ports = proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_SCTP;

	if ((a->sport.given || a->dport.given) && (!ports || a->type.given))
		fail(k, at, NULL, "this protocol has no ports");
	else if ((a->sport.given || a->dport.given) && a->fragment)
		fail(k, at, NULL, "a later fragment has no ports");
	k->packet->sport = (uint16_t)a->sport.value;
	k->packet->dport = (uint16_t)a->dport.value;
}

static void read_flags(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct value v = resolve_value(k->r, a->at);
	const struct ast_list none = {0};
	uint8_t mask;

	k->packet->flags = FLAG_SYN;
	if (!a->flags.given)
		return;
	k->packet->flags = 0;
	if (k->packet->proto != PROTO_TCP)
		fail(k, a->flags.at, NULL, "'flags' needs tcp");
	if (value_flags(&v, &a->flags, &none, &k->packet->flags, &mask) < 0)
		k->ok = false;
}

bool resolve_packet(struct resolver *r, const struct ast_expect *ast, struct resolved_packet *ret)
{
	const struct ast_packet *a = &ast->packet;
	struct packet_work k = {.r = r, .ast = ast, .packet = ret, .ok = true};

	read_on(&k);
	ret->vlan = (uint16_t)a->vlan.value;
	ret->length = a->length.value;
	ret->over = a->over;
	if (a->ethertype) {
		read_frame(&k);
		return k.ok;
	}
	ret->ip = true;
	ret->ttl = (uint8_t)a->ttl.value;
	ret->fragment = a->fragment;
	ret->established = a->established;
	read_proto(&k);
	read_type(&k);
	read_ports(&k);
	read_flags(&k);
	if (a->established && ret->proto != PROTO_TCP && ret->proto != PROTO_UDP)
		fail(&k, a->at, NULL, "'established' needs tcp or udp");
	return k.ok;
}
