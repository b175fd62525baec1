// SPDX-License-Identifier: GPL-2.0-only
// Packets are built from the transport header outwards, each with all of its checksums.
#include "tests/datapath/nat_packet.h"

#include <netinet/in.h>
#include <string.h>

#define MORE 0x2000

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint64_t add_up(uint64_t sum, const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)at[i] << (i % 2 ? 0 : 8);
	return sum;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static size_t width(const struct nat_sent *p)
{
	return p->names.family == 4 ? 4 : 16;
}

static uint8_t proto_of(const struct nat_sent *p)
{
	if (!p->about)
		return p->proto;
	return p->names.family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
}

static uint64_t pseudo(const struct nat_sent *p, size_t n)
{
	return add_up(add_up(proto_of(p) + n, p->names.src, width(p)), p->names.dst, width(p));
}

// ---- transport ----------------------------------------------------------------------------------

static void put_sum(const struct nat_sent *p, uint8_t *l4, size_t n, size_t at)
{
	uint64_t sum = pseudo(p, n);

	if (p->extra & NAT_NO_SUM)
		return;
	sum = p->extra & NAT_PARTIAL ? fold(sum) : (uint16_t)~fold(add_up(sum, l4, n));
	put16(l4 + at, !sum && p->proto == IPPROTO_UDP ? 0xffff : sum);
}

static size_t put_sctp(const struct nat_sent *p, uint8_t *l4)
{
	memset(l4 + 4, p->flags == 1 ? 0 : 5, 4); // INIT has no tag
	memset(l4 + 8, 0x77, 4);                  // not read
	l4[12] = p->flags;
	return 16;
}

// Returns its length.
static size_t put_transport(const struct nat_sent *p, uint8_t *l4)
{
	size_t header = p->proto == IPPROTO_TCP ? 20 : 8, n = header + p->payload;

	memset(l4, 0, n + 20);
	for (size_t i = header; i < n; i++)
		l4[i] = (uint8_t)(i * 7);
	put16(l4, p->names.sport);
	put16(l4 + 2, p->names.dport);
	if (p->proto == IPPROTO_SCTP)
		return put_sctp(p, l4);
	if (p->proto == IPPROTO_TCP) {
		l4[12] = 0x50;
		l4[13] = p->flags;
	} else {
		put16(l4 + 4, n);
	}
	put_sum(p, l4, n, p->proto == IPPROTO_TCP ? 16 : 6);
	return n;
}

// ---- IP -----------------------------------------------------------------------------------------

static size_t put_packet(const struct nat_sent *p, uint8_t *ip);

static size_t put_error(const struct nat_sent *p, uint8_t *l4)
{
	static uint8_t about[FRAME_MAX];
	size_t header = p->about->names.family == 4 ? 20 : 40, n;

	if (p->about->names.family == 4 && p->about->extra & NAT_OPTIONS)
		header += 8;
	put_packet(p->about, about);
	memset(l4, 0, 8);
	l4[0] = p->flags;
	memcpy(l4 + 8, about, header + p->quoted);
	n = 8 + header + p->quoted;
	put16(l4 + 2, (uint16_t)~fold(add_up(p->names.family == 4 ? 0 : pseudo(p, n), l4, n)));
	return n;
}

// Returns their length.
static size_t put_options4(const struct nat_sent *p, uint8_t *at)
{
	static const uint8_t router_alert[] = {148, 4, 0, 0, 1, 1, 1, 0};
	static const uint8_t loose_route[] = {131, 7, 4, 10, 9, 9, 9, 0};

	if (!(p->extra & (NAT_OPTIONS | NAT_ROUTED)))
		return 0;
	memcpy(at, p->extra & NAT_ROUTED ? loose_route : router_alert, 8);
	return 8;
}

static void put_header6(const struct nat_sent *p, uint8_t kind, uint8_t *at)
{
	static const uint8_t pad[] = {0, 0, 1, 4, 0, 0, 0, 0};
	static const uint8_t segments_left[] = {0, 0, 253, 1, 0, 0, 0, 0};

	memcpy(at, kind == IPPROTO_ROUTING ? segments_left : pad, 8);
	if (kind != IPPROTO_FRAGMENT)
		return;
	memset(at, 0, 8);
	put16(at + 2, p->from);
	put16(at + 6, p->id);
}

// Extension headers, the one of a fragment last; returns their length. *next: the protocol of what
// follows, and then of the first of them.
static size_t put_headers6(const struct nat_sent *p, uint8_t *at, uint8_t *next)
{
	uint8_t kinds[4];
	size_t n = 0;

	if (p->extra & NAT_OPTIONS) {
		kinds[n++] = IPPROTO_HOPOPTS;
		kinds[n++] = IPPROTO_DSTOPTS;
	}
	if (p->extra & NAT_ROUTED)
		kinds[n++] = IPPROTO_ROUTING;
	if (p->to)
		kinds[n++] = IPPROTO_FRAGMENT;
	for (size_t i = 0; i < n; i++) {
		put_header6(p, kinds[i], at + 8 * i);
		at[8 * i] = i + 1 < n ? kinds[i + 1] : *next;
	}
	*next = n ? kinds[0] : *next;
	return 8 * n;
}

static void put_ip4(const struct nat_sent *p, uint8_t *ip, size_t extra, size_t n, size_t whole)
{
	memset(ip, 0, 20);
	ip[0] = (uint8_t)(0x45 + extra / 4);
	put16(ip + 2, 20 + extra + n);
	put16(ip + 4, p->id);
	put16(ip + 6, p->to ? p->from / 8 | (p->to < whole ? MORE : 0) : 0x4000);
	ip[8] = p->ttl;
	ip[9] = proto_of(p);
	memcpy(ip + 12, p->names.src, 4);
	memcpy(ip + 16, p->names.dst, 4);
	put16(ip + 10, (uint16_t)~fold(add_up(0, ip, 20 + extra)));
}

static void put_ip6(const struct nat_sent *p, uint8_t *ip, size_t extra, size_t n, uint8_t next)
{
	memset(ip, 0, 40);
	ip[0] = 0x60;
	put16(ip + 4, extra + n);
	ip[6] = next;
	ip[7] = p->ttl;
	memcpy(ip + 8, p->names.src, 16);
	memcpy(ip + 24, p->names.dst, 16);
}

// From the IP header on; returns the length.
static size_t put_packet(const struct nat_sent *p, uint8_t *ip)
{
	uint8_t l4[FRAME_MAX], next = proto_of(p);
	size_t header = p->names.family == 4 ? 20 : 40;
	size_t extra = p->names.family == 4 ? put_options4(p, ip + header)
					    : put_headers6(p, ip + header, &next);
	size_t whole = p->about ? put_error(p, l4) : put_transport(p, l4);
	size_t to = p->to && p->to < whole ? p->to : whole, n = to - p->from;

	memcpy(ip + header + extra, l4 + p->from, n);
	if (p->names.family == 4) {
		put_ip4(p, ip, extra, n, whole);
	} else {
		put_ip6(p, ip, extra, n, next);
		if (p->to && to < whole)
			ip[header + extra - 8 + 3] |= 1;
	}
	return header + extra + n;
}

// ---- the frame ----------------------------------------------------------------------------------

void nat_build(const struct nat_sent *p, struct frame *ret)
{
	size_t l3 = 12;

	memset(ret->at, 0, sizeof(ret->at));
	memcpy(ret->at, p->mac_own, 6);
	memcpy(ret->at + 6, p->mac, 6);
	if (p->extra & (NAT_TAGGED | NAT_TAGGED_TWICE)) {
		put16(ret->at + l3, 0x8100);
		put16(ret->at + l3 + 2, 7);
		l3 += 4;
	}
	if (p->extra & NAT_TAGGED_TWICE) {
		put16(ret->at + l3, 0x8100);
		put16(ret->at + l3 + 2, 9);
		l3 += 4;
	}
	put16(ret->at + l3, p->names.family == 4 ? 0x0800 : 0x86dd);
	l3 += 2;
	ret->len = l3 + put_packet(p, ret->at + l3) + p->tail;
}

struct outcome nat_send(const struct nat_rig *r, const struct nat_sent *p)
{
	static struct frame f;

	nat_build(p, &f);
	r->rig->aside++;
	return rig_send_on(r->rig, RIG_IFACE, &f, 0);
}
