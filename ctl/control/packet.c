// SPDX-License-Identifier: GPL-2.0-only
// Reads the headers of a frame of which only the first bytes may be known.
#include "ctl/control/packet.h"

#include <net/ethernet.h>
#include <netinet/in.h>
#include <string.h>

#define ETHERTYPE_QINQ 0x88a8 // 802.1ad

struct packet_cursor {
	const uint8_t *at;
	size_t left;
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool skip(struct packet_cursor *c, size_t n)
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

static void read_transport(struct packet_fields *p, struct packet_cursor c)
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

static void read_ip4(struct packet_fields *p, struct packet_cursor c)
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

static void read_ip6(struct packet_fields *p, struct packet_cursor c)
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
	struct packet_cursor c = {frame, len};

	*ret = (struct packet_fields){.length = len};
	if (len < 14)
		return;
	ret->ethernet = true;
	ret->ethertype = be16(frame + 12);
	skip(&c, 14);
	while ((ret->ethertype == ETHERTYPE_VLAN || ret->ethertype == ETHERTYPE_QINQ) &&
	       c.left >= 4 && ret->n_vlans < PACKET_VLANS_MAX) {
		ret->vlans[ret->n_vlans++] = be16(c.at) & 0xfff;
		ret->ethertype = be16(c.at + 2);
		skip(&c, 4);
	}
	if (ret->ethertype == ETHERTYPE_IP)
		read_ip4(ret, c);
	else if (ret->ethertype == ETHERTYPE_IPV6)
		read_ip6(ret, c);
}
