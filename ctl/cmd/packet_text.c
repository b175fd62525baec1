// SPDX-License-Identifier: GPL-2.0-only
// Reads and describes captured frames, for `weir watch`.
#include "ctl/cmd/packet_text.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/policy/names.h"

enum {
	ETHERTYPE_IP4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_CTAG = 0x8100,
	ETHERTYPE_IP6 = 0x86dd,
	ETHERTYPE_STAG = 0x88a8
};

struct text_cursor {
	const uint8_t *at;
	size_t left;
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool skip(struct text_cursor *c, size_t n)
{
	if (c->left < n)
		return false;
	c->at += n;
	c->left -= n;
	return true;
}

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

static const char *const flag_names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

static void read_transport(struct packet_fields *p, struct text_cursor c)
{
	if (p->later)
		return;
	if (has_ports(p->proto) && c.left >= 4) {
		p->ports = true;
		p->from_port = be16(c.at);
		p->to_port = be16(c.at + 2);
	}
	if (p->proto == IPPROTO_TCP && c.left >= 14) {
		p->tcp = true;
		p->flags = c.at[13];
	}
	if ((p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6) && c.left >= 2) {
		p->icmp = true;
		p->type = c.at[0];
		p->code = c.at[1];
	}
}

static void read_ip4(struct packet_fields *p, struct text_cursor c)
{
	uint32_t be;

	if (c.left < 20)
		return;
	p->ip = true;
	p->proto = c.at[9];
	p->later = be16(c.at + 6) & 0x1fff;
	memcpy(&be, c.at + 12, 4);
	p->from = addr_from_v4(be);
	memcpy(&be, c.at + 16, 4);
	p->to = addr_from_v4(be);
	if (!skip(&c, (size_t)(c.at[0] & 15) * 4))
		c.left = 0;
	read_transport(p, c);
}

static void read_ip6(struct packet_fields *p, struct text_cursor c)
{
	uint8_t next;

	if (c.left < 40)
		return;
	next = c.at[6];
	p->ip = true;
	p->from = addr_from_v6(c.at + 8);
	p->to = addr_from_v6(c.at + 24);
	skip(&c, 40);
	while ((next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
		next == IPPROTO_FRAGMENT) &&
	       c.left >= 8 && !p->later) {
		bool fragment = next == IPPROTO_FRAGMENT;

		p->later = fragment && be16(c.at + 2) & 0xfff8;
		next = c.at[0];
		if (!skip(&c, fragment ? 8 : (c.at[1] + 1u) * 8))
			c.left = 0;
	}
	p->proto = next;
	read_transport(p, c);
}

void packet_read(const uint8_t *frame, size_t len, struct packet_fields *ret)
{
	struct text_cursor c = {frame, len};

	*ret = (struct packet_fields){.length = len};
	if (len < 14)
		return;
	ret->ethernet = true;
	ret->ethertype = be16(frame + 12);
	skip(&c, 14);
	while ((ret->ethertype == ETHERTYPE_CTAG || ret->ethertype == ETHERTYPE_STAG) &&
	       c.left >= 4 && ret->n_vlans < PACKET_VLANS_MAX) {
		ret->vlans[ret->n_vlans++] = be16(c.at) & 0xfff;
		ret->ethertype = be16(c.at + 2);
		skip(&c, 4);
	}
	if (ret->ethertype == ETHERTYPE_IP4)
		read_ip4(ret, c);
	else if (ret->ethertype == ETHERTYPE_IP6)
		read_ip6(ret, c);
}

static void add_flags(struct text *t, uint8_t flags)
{
	const char *gap = " [";

	for (unsigned bit = 0; bit < 8; bit++)
		if (flags & 1u << bit) {
			text_addf(t, "%s%s", gap, flag_names[bit]);
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
	else if (p->ethertype == ETHERTYPE_IP4)
		text_add(t, "ip4, truncated");
	else if (p->ethertype == ETHERTYPE_IP6)
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
			out_item_string(o, flag_names[bit]);
	out_end(o);
}
