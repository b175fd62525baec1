// SPDX-License-Identifier: GPL-2.0-only
// Describes captured frames, for `weir watch` and `weir explain`.
//
// control/packet.c reads a frame: `ip`, `ports`, `tcp` and `icmp` mark the fields that were
// captured, `later` a fragment that is not the first and so has no transport header.
#include "ctl/cmd/packet_text.h"

#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/policy/names.h"

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

static void add_flags(struct text *t, uint8_t flags)
{
	const char *gap = " [";

	for (unsigned bit = 0; bit < 8; bit++)
		if (flags & 1u << bit) {
			text_addf(t, "%s%s", gap, names_of_flag((uint8_t)(1u << bit)));
			gap = ",";
		}
	text_add(t, flags ? "]" : " [none]");
}

static const char *proto_name(uint8_t proto)
{
	return has_ports(proto) || proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6
		       ? names_of_proto(proto)
		       : NULL;
}

static void add_ip(struct text *t, const struct packet_fields *p)
{
	const char *name = proto_name(p->proto);
	addr_text a, b;

	if (name)
		text_addf(t, "%s ", name);
	text_add(t, addr_format(&p->from, a));
	if (p->ports)
		text_addf(t, " port %u", p->from_port);
	text_addf(t, " > %s", addr_format(&p->to, b));
	if (p->ports)
		text_addf(t, " port %u", p->to_port);
	if (!name)
		text_addf(t, " proto %u", p->proto);
	if (p->later)
		text_add(t, " fragment");
	if (p->tcp)
		add_flags(t, p->flags);
	if (p->icmp)
		text_addf(t, " type %u code %u", p->type, p->code);
}

static void add_frame(struct text *t, const struct packet_fields *p)
{
	if (!p->ethernet) {
		text_addf(t, "frame of %zu bytes", p->length);
		return;
	}
	for (size_t n = 0; n < p->n_vlans; n++)
		text_addf(t, "vlan %u ", p->vlans[n]);
	if (p->ip)
		add_ip(t, p);
	else if (p->ethertype == ETHERTYPE_IP)
		text_add(t, "ip4, truncated");
	else if (p->ethertype == ETHERTYPE_IPV6)
		text_add(t, "ip6, truncated");
	else if (p->ethertype == ETHERTYPE_ARP)
		text_add(t, "arp");
	else
		text_addf(t, "ethertype 0x%04x", p->ethertype);
}

void packet_describe(const uint8_t *frame, size_t len, char *buf, size_t size)
{
	struct packet_fields p;
	CLEANUP_TEXT struct text t = {0};

	packet_read(frame, len, &p);
	add_frame(&t, &p);
	snprintf(buf, size, "%s", text_get(&t));
}

static void set_ip(struct out *o, const struct packet_fields *p)
{
	char number[8];
	addr_text text;

	snprintf(number, sizeof(number), "%u", p->proto);
	out_set_string(o, "from", addr_format(&p->from, text));
	out_set_string(o, "to", addr_format(&p->to, text));
	out_set_string(o, "protocol", proto_name(p->proto) ? proto_name(p->proto) : number);
	out_set_bool(o, "fragment", p->later);
	if (p->ports) {
		out_set_u64(o, "from_port", p->from_port);
		out_set_u64(o, "to_port", p->to_port);
	}
	if (p->icmp) {
		out_set_u64(o, "type", p->type);
		out_set_u64(o, "code", p->code);
	}
}

void packet_set_fields(struct out *o, const struct packet_fields *p)
{
	char type[8];

	if (!p->ethernet)
		return;
	out_array(o, "vlans");
	for (size_t n = 0; n < p->n_vlans; n++)
		out_item_u64(o, p->vlans[n]);
	out_end(o);
	snprintf(type, sizeof(type), "0x%04x", p->ethertype);
	out_set_string(o, "ethertype", type);
	if (p->ip)
		set_ip(o, p);
	if (!p->tcp)
		return;
	out_array(o, "flags");
	for (unsigned bit = 0; bit < 8; bit++)
		if (p->flags & 1u << bit)
			out_item_string(o, names_of_flag((uint8_t)(1u << bit)));
	out_end(o);
}
