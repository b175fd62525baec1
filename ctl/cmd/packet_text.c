// SPDX-License-Identifier: GPL-2.0-only
// Describes frames for `weir watch`: reads only what is there and never decides anything.
#include "ctl/cmd/packet_text.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/text.h"

struct cursor {
	const uint8_t *at;
	size_t left;
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool skip(struct cursor *c, size_t n)
{
	if (c->left < n)
		return false;
	c->at += n;
	c->left -= n;
	return true;
}

static const char *proto_name(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmp6";
	case IPPROTO_SCTP:
		return "sctp";
	default:
		return NULL;
	}
}

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

static void add_flags(struct text *t, uint8_t flags)
{
	static const char *const names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};
	const char *gap = " [";

	for (unsigned bit = 0; bit < 8; bit++)
		if (flags & 1u << bit) {
			text_addf(t, "%s%s", gap, names[bit]);
			gap = ",";
		}
	text_add(t, flags ? "]" : " [none]");
}

static void add_transport(struct text *t, struct cursor c, uint8_t proto, bool later,
			  const struct addr *src, const struct addr *dst)
{
	bool ports = has_ports(proto) && !later && c.left >= 4;
	addr_text a, b;

	if (proto_name(proto))
		text_addf(t, "%s ", proto_name(proto));
	text_add(t, addr_format(src, a));
	if (ports)
		text_addf(t, " port %u", be16(c.at));
	text_addf(t, " > %s", addr_format(dst, b));
	if (ports)
		text_addf(t, " port %u", be16(c.at + 2));
	if (!proto_name(proto))
		text_addf(t, " proto %u", proto);
	if (later)
		text_add(t, " fragment");
	else if (proto == IPPROTO_TCP && c.left >= 14)
		add_flags(t, c.at[13]);
	else if ((proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) && c.left >= 2)
		text_addf(t, " type %u code %u", c.at[0], c.at[1]);
}

static void add_ip4(struct text *t, struct cursor c)
{
	struct addr src, dst;
	uint8_t proto;
	bool later;
	uint32_t be;

	if (c.left < 20) {
		text_add(t, "ip4, cut off");
		return;
	}
	proto = c.at[9];
	later = be16(c.at + 6) & 0x1fff;
	memcpy(&be, c.at + 12, 4);
	src = addr_from_v4(be);
	memcpy(&be, c.at + 16, 4);
	dst = addr_from_v4(be);
	if (!skip(&c, (size_t)(c.at[0] & 15) * 4))
		c.left = 0;
	add_transport(t, c, proto, later, &src, &dst);
}

static void add_ip6(struct text *t, struct cursor c)
{
	struct addr src, dst;
	uint8_t next;
	bool later = false;

	if (c.left < 40) {
		text_add(t, "ip6, cut off");
		return;
	}
	next = c.at[6];
	src = addr_from_v6(c.at + 8);
	dst = addr_from_v6(c.at + 24);
	skip(&c, 40);
	while ((next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
		next == IPPROTO_FRAGMENT) &&
	       c.left >= 8 && !later) {
		bool fragment = next == IPPROTO_FRAGMENT;

		later = fragment && be16(c.at + 2) & 0xfff8;
		next = c.at[0];
		if (!skip(&c, fragment ? 8 : (c.at[1] + 1u) * 8))
			c.left = 0;
	}
	add_transport(t, c, next, later, &src, &dst);
}

static void add_frame(struct text *t, struct cursor c)
{
	uint16_t type;

	if (c.left < 14) {
		text_addf(t, "frame of %zu bytes", c.left);
		return;
	}
	type = be16(c.at + 12);
	skip(&c, 14);
	while ((type == 0x8100 || type == 0x88a8) && c.left >= 4) {
		text_addf(t, "vlan %u ", be16(c.at) & 0xfff);
		type = be16(c.at + 2);
		skip(&c, 4);
	}
	if (type == 0x0800)
		add_ip4(t, c);
	else if (type == 0x86dd)
		add_ip6(t, c);
	else if (type == 0x0806)
		text_add(t, "arp");
	else
		text_addf(t, "ethertype 0x%04x", type);
}

void packet_describe(const uint8_t *frame, size_t len, char *buf, size_t size)
{
	struct text t = {0};

	add_frame(&t, (struct cursor){frame, len});
	snprintf(buf, size, "%s", text_get(&t));
	text_free(&t);
}
