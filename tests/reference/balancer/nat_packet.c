// SPDX-License-Identifier: GPL-2.0-only
// Frames of the model of nat and fullnat: what a packet says, the same packet with other names, and
// what its sender gets back.
#include <string.h>

#include "../layout.h"
#include "nat_model.h"

#define TCP          6
#define UDP          17
#define ICMP         1
#define ICMP6        58
#define HOP_BY_HOP   0
#define ROUTING      43
#define FRAGMENT     44
#define DESTINATION  60
#define LOOSE_ROUTE  131 /* options of IPv4 */
#define STRICT_ROUTE 137
#define QUOTED       8 /* bytes after the quoted IP header, at least */
#define TYPE_IP4     0x0800
#define TYPE_IP6     0x86dd
#define TYPE_TAG     0x8100
#define TYPE_SVLAN   0x88a8
#define SHORT_FRAME  64 /* may be padded */
#define OFFSET4      0x1fff
#define MORE4        0x2000
#define OFFSET6      0xfff8
#define MORE6        0x0001

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Offsets and lengths of the headers of a frame. */
struct parts {
	size_t ip, l4, sum; /* sum: of the transport header's checksum */
	size_t length;      /* of IP */
	size_t addr;        /* bytes of an address; the source is at `src`, the destination next */
	size_t src;
	unsigned int tags;
	uint16_t vlan; /* of the last tag */
	uint8_t family, proto;
	enum natref_part part;
	uint32_t id;
	bool extended; /* IPv6: with extension headers */
	bool routed;   /* its source has chosen a route whose end is not reached */
};

// ---- reading ------------------------------------------------------------------------------------

static bool find_ip(const uint8_t *frame, size_t len, struct parts *p)
{
	uint16_t type = get16(frame + ETHER_TYPE);

	p->ip = ETHER_BYTES;
	while (p->tags < 2 && (type == TYPE_TAG || type == TYPE_SVLAN)) {
		p->vlan = get16(frame + p->ip + TAG_TCI) & 0xfff;
		type = get16(frame + p->ip + TAG_TYPE);
		p->ip += TAG_BYTES;
		p->tags++;
	}
	p->family = type == TYPE_IP4 ? 4 : type == TYPE_IP6 ? 6 : 0;
	return p->family && len >= p->ip + (p->family == 4 ? IP4_BYTES : IP6_BYTES) + UDP_BYTES;
}

static bool is_routed4(const uint8_t *ip, size_t header)
{
	for (size_t at = IP4_BYTES; at < header && ip[at];) {
		if (ip[at] == LOOSE_ROUTE || ip[at] == STRICT_ROUTE)
			return ip[at + 2] <= ip[at + 1];
		at += ip[at] == 1 ? 1 : ip[at + 1];
	}
	return false;
}

static void find_fields4(const uint8_t *ip, struct parts *p)
{
	uint16_t fragment = get16(ip + IP4_FRAGMENT);
	size_t header = (ip[IP4_VERSION] & 15u) * 4;

	p->addr = 4;
	p->src = p->ip + IP4_FROM;
	p->l4 = p->ip + header;
	p->proto = ip[IP4_PROTO];
	p->length = get16(ip + IP4_LENGTH);
	p->id = get16(ip + IP4_ID);
	p->part = fragment & OFFSET4 ? NATREF_LATER
		  : fragment & MORE4 ? NATREF_FIRST
				     : NATREF_WHOLE;
	p->routed = is_routed4(ip, header);
}

static void read_fragment(const uint8_t *header, struct parts *p)
{
	uint16_t offset = get16(header + FRAGMENT_OFFSET);

	p->id = get32(header + FRAGMENT_ID);
	p->part = offset & OFFSET6 ? NATREF_LATER : offset & MORE6 ? NATREF_FIRST : NATREF_WHOLE;
}

static void find_fields6(const uint8_t *ip, struct parts *p)
{
	const uint8_t *at = ip + IP6_BYTES;

	p->addr = 16;
	p->src = p->ip + IP6_FROM;
	p->length = IP6_BYTES + (size_t)get16(ip + IP6_LENGTH);
	p->proto = ip[IP6_NEXT];
	while (p->part != NATREF_LATER && (p->proto == HOP_BY_HOP || p->proto == ROUTING ||
					   p->proto == DESTINATION || p->proto == FRAGMENT)) {
		uint8_t next = at[EXT_NEXT];

		p->extended = true;
		p->routed |= p->proto == ROUTING && at[EXT_OPTION_LENGTH];
		if (p->proto == FRAGMENT)
			read_fragment(at, p);
		at += p->proto == FRAGMENT ? FRAGMENT_BYTES : (at[EXT_LENGTH] + 1u) * 8;
		p->proto = next;
	}
	p->l4 = p->ip + (size_t)(at - ip);
}

static void find_fields(const uint8_t *ip, struct parts *p)
{
	if (p->family == 4)
		find_fields4(ip, p);
	else
		find_fields6(ip, p);
	p->sum = p->l4 + (p->proto == TCP ? TCP_SUM : UDP_SUM);
}

static bool find_parts(const uint8_t *frame, size_t len, struct parts *p)
{
	memset(p, 0, sizeof(*p));
	if (len < ETHER_BYTES + 2 * TAG_BYTES || !find_ip(frame, len, p))
		return false;
	find_fields(frame + p->ip, p);
	return p->ip + p->length <= len;
}

static bool has_ports(const struct parts *p)
{
	return p->proto == TCP || p->proto == UDP;
}

static bool is_error(const uint8_t *frame, const struct parts *p)
{
	uint8_t type = frame[p->l4 + ICMP_TYPE];

	if (p->part != NATREF_WHOLE)
		return false;
	if (p->family == 4)
		return p->proto == ICMP && (type == 3 || type == 11 || type == 12);
	return p->proto == ICMP6 && type >= 1 && type <= 4;
}

/* Where the quote of an error is, as if it were a frame. false: it is left alone. */
static bool find_quote(const uint8_t *frame, const struct parts *p, struct parts *ret)
{
	*ret = (struct parts){.family = p->family, .ip = p->l4 + ICMP_BYTES};
	if (frame[ret->ip] >> 4 != p->family)
		return false;
	find_fields(frame + ret->ip, ret);
	if (!has_ports(ret) || ret->part == NATREF_LATER || ret->extended ||
	    ret->l4 + QUOTED > p->ip + p->length)
		return false;
	return !memcmp(frame + ret->src, frame + p->src + p->addr, p->addr);
}

static void read_quote(const uint8_t *frame, const struct parts *q, struct natref_packet *ret)
{
	ret->error = true;
	ret->proto = q->proto;
	memcpy(ret->quote.src, frame + q->src, q->addr);
	memcpy(ret->quote.dst, frame + q->src + q->addr, q->addr);
	ret->quote.sport = get16(frame + q->l4 + TCP_SPORT);
	ret->quote.dport = get16(frame + q->l4 + TCP_DPORT);
}

static void read_ports(const uint8_t *frame, const struct parts *p, struct natref_packet *ret)
{
	if (p->part == NATREF_LATER)
		return;
	ret->flags = p->proto == TCP ? frame[p->l4 + TCP_FLAGS] : 0;
	ret->sport = get16(frame + p->l4 + TCP_SPORT);
	ret->dport = get16(frame + p->l4 + TCP_DPORT);
}

bool natref_read(const uint8_t *frame, size_t len, uint16_t number, struct natref_packet *ret)
{
	struct parts p, q;
	bool error;

	if (!find_parts(frame, len, &p) || p.routed)
		return false;
	error = is_error(frame, &p);
	if (error ? !find_quote(frame, &p, &q) : !has_ports(&p) && p.part != NATREF_LATER)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->family = p.family;
	ret->proto = p.proto;
	memcpy(ret->src, frame + p.src, p.addr);
	memcpy(ret->dst, frame + p.src + p.addr, p.addr);
	ret->part = p.part;
	ret->id = p.id;
	ret->hops = frame[p.ip + (p.family == 4 ? IP4_TTL : IP6_HOPS)];
	ret->length = p.length;
	memcpy(ret->from.mac, frame + ETHER_FROM, 6);
	memcpy(ret->from.own, frame + ETHER_TO, 6);
	ret->from.vlan = p.vlan;
	ret->from.number = p.tags < 2 ? number : 0;
	if (error)
		read_quote(frame, &q, ret);
	else
		read_ports(frame, &p, ret);
	return true;
}

// ---- checksums ----------------------------------------------------------------------------------

static uint64_t add_words(uint64_t sum, const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		sum += (uint64_t)at[i] << (i % 2 ? 0 : 8);
	return sum;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static size_t l4_bytes(const struct parts *p)
{
	return p->length - (p->l4 - p->ip);
}

static uint64_t pseudo(const uint8_t *frame, const struct parts *p)
{
	return add_words(p->proto + l4_bytes(p), frame + p->src, 2 * p->addr);
}

/* The checksum from nothing but the packet. */
static uint16_t whole_sum(uint8_t *frame, const struct parts *p, size_t at)
{
	uint16_t was = get16(frame + at), sum;

	put16(frame + at, 0);
	sum = (uint16_t)~fold(
		add_words(p->proto == ICMP ? 0 : pseudo(frame, p), frame + p->l4, l4_bytes(p)));
	put16(frame + at, was);
	return sum || p->proto != UDP ? sum : 0xffff;
}

/* A checksum whose bytes have changed from a sum to another one (RFC 1624). */
static void move_sum(uint8_t *at, uint64_t from, uint64_t to, bool udp)
{
	uint16_t sum = get16(at);

	if (udp && !sum)
		return;
	sum = (uint16_t)~fold((uint64_t)(uint16_t)~sum + (uint16_t)~fold(from) + fold(to));
	put16(at, udp && !sum ? 0xffff : sum);
}

/* The words that a translation changes and the checksum of the transport header covers. */
static uint64_t names_sum(const uint8_t *frame, const struct parts *p)
{
	return add_words(add_words(0, frame + p->src, 2 * p->addr), frame + p->l4, 4);
}

// ---- writing ------------------------------------------------------------------------------------

static void put_header_sum(uint8_t *frame, const struct parts *p)
{
	uint8_t *ip = frame + p->ip;

	if (p->family != 4)
		return;
	put16(ip + IP4_SUM, 0);
	put16(ip + IP4_SUM, (uint16_t)~fold(add_words(0, ip, p->l4 - p->ip)));
}

static void put_names(uint8_t *frame, const struct parts *p, const uint8_t *src, const uint8_t *dst)
{
	memcpy(frame + p->src, src, p->addr);
	memcpy(frame + p->src + p->addr, dst, p->addr);
}

static void put_ports(uint8_t *frame, const struct parts *p, uint16_t sport, uint16_t dport)
{
	put16(frame + p->l4 + TCP_SPORT, sport);
	put16(frame + p->l4 + TCP_DPORT, dport);
}

/* The quote with other names. Most of its bytes may be missing, so its sums can only be moved. */
static void put_quote(uint8_t *frame, const struct parts *p, const struct natref_quote *names)
{
	uint64_t addresses, all;
	struct parts q;

	find_quote(frame, p, &q);
	addresses = add_words(0, frame + q.src, 2 * q.addr);
	all = names_sum(frame, &q);
	put_names(frame, &q, names->src, names->dst);
	put_ports(frame, &q, names->sport, names->dport);
	if (q.family == 4)
		move_sum(frame + q.ip + IP4_SUM, addresses, add_words(0, frame + q.src, 2 * q.addr),
			 false);
	if (q.sum + 2 <= p->ip + p->length)
		move_sum(frame + q.sum, all, names_sum(frame, &q), q.proto == UDP);
}

/* A sender that has left the rest of the checksum to its device has summed up the pseudo-header. */
static bool is_partial(const uint8_t *frame, const struct parts *p)
{
	uint16_t sum = get16(frame + p->sum), head = fold(pseudo(frame, p));

	return p->part == NATREF_WHOLE && (sum == head || (sum == 0 && head == 0xffff));
}

static void put_error(uint8_t *frame, const struct parts *p, const struct natref_answer *a)
{
	put_quote(frame, p, &a->quote);
	put_names(frame, p, a->src, a->dst);
	put16(frame + p->l4 + ICMP_SUM, whole_sum(frame, p, p->l4 + ICMP_SUM));
}

/* A checksum that was right is right again, a wrong one as wrong as it was. */
static void put_segment(uint8_t *frame, const struct parts *p, const struct natref_answer *a)
{
	bool none = p->proto == UDP && !get16(frame + p->sum);
	bool complete =
		is_partial(frame, p) ||
		(p->part == NATREF_WHOLE && whole_sum(frame, p, p->sum) == get16(frame + p->sum));
	uint64_t names = names_sum(frame, p);

	put_names(frame, p, a->src, a->dst);
	put_ports(frame, p, a->sport, a->dport);
	if (none)
		return;
	if (complete)
		put16(frame + p->sum, whole_sum(frame, p, p->sum));
	else
		move_sum(frame + p->sum, names, names_sum(frame, p), p->proto == UDP);
}

/* Up to the IP header; returns where that begins. */
static size_t put_link(uint8_t *out, uint8_t family, const struct natref_hop *to)
{
	size_t ip = to->vlan ? ETHER_BYTES + TAG_BYTES : ETHER_BYTES;

	memcpy(out + ETHER_TO, to->mac, 6);
	memcpy(out + ETHER_FROM, to->own, 6);
	if (to->vlan) {
		put16(out + ETHER_TYPE, TYPE_TAG);
		put16(out + ETHER_BYTES + TAG_TCI, to->vlan);
	}
	put16(out + ip - 2, family == 4 ? TYPE_IP4 : TYPE_IP6);
	return ip;
}

size_t natref_write(const uint8_t *frame, size_t len, const struct natref_answer *a,
		    uint8_t out[NATREF_FRAME])
{
	struct parts old, p;
	size_t bytes, ip;

	if (!find_parts(frame, len, &old))
		return 0;
	bytes = len > SHORT_FRAME ? old.length : len - old.ip;
	ip = put_link(out, old.family, &a->to);
	memcpy(out + ip, frame + old.ip, bytes);
	find_parts(out, ip + bytes, &p);
	out[p.ip + (p.family == 4 ? IP4_TTL : IP6_HOPS)]--;
	if (p.part == NATREF_LATER)
		put_names(out, &p, a->src, a->dst);
	else if (has_ports(&p))
		put_segment(out, &p, a);
	else
		put_error(out, &p, a);
	put_header_sum(out, &p);
	return ip + bytes;
}

// ---- what the sender gets -----------------------------------------------------------------------

/* Both frames have the same link, in the other direction. */
static bool is_turned_link(const uint8_t *frame, const uint8_t *out, size_t ip)
{
	return !memcmp(out + ETHER_TO, frame + ETHER_FROM, 6) &&
	       !memcmp(out + ETHER_FROM, frame + ETHER_TO, 6) &&
	       !memcmp(out + ETHER_TYPE, frame + ETHER_TYPE, ip - ETHER_TYPE);
}

static bool has_right_sums(uint8_t *out, const struct parts *p)
{
	size_t at = p->proto == TCP ? p->sum : p->l4 + ICMP_SUM;

	if (p->family == 4 && fold(add_words(0, out + p->ip, p->l4 - p->ip)) != 0xffff)
		return false;
	return whole_sum(out, p, at) == get16(out + at);
}

/* RFC 9293 section 3.10.7.1. */
static bool is_reset_of(const uint8_t *frame, const struct parts *old, const uint8_t *out,
			const struct parts *p)
{
	const uint8_t *was = frame + old->l4, *now = out + p->l4;
	uint32_t covers = (uint32_t)l4_bytes(old) - (was[TCP_OFFSET] >> 4) * 4u +
			  (was[TCP_FLAGS] & 1) + (was[TCP_FLAGS] >> 1 & 1);
	bool ack = was[TCP_FLAGS] & 0x10;

	return p->proto == TCP && l4_bytes(p) == TCP_BYTES && now[TCP_OFFSET] >> 4 == 5 &&
	       now[TCP_FLAGS] == (ack ? 0x04 : 0x14) &&
	       get16(now + TCP_SPORT) == get16(was + TCP_DPORT) &&
	       get16(now + TCP_DPORT) == get16(was + TCP_SPORT) &&
	       get32(now + TCP_SEQ) == (ack ? get32(was + TCP_ACK) : 0) &&
	       get32(now + TCP_ACK) == (ack ? 0 : get32(was + TCP_SEQ) + covers);
}

/* RFC 792 and 1191, RFC 4443 sections 3.2 and 3.3. */
static bool is_error_of(const struct natref_answer *a, const uint8_t *l4, uint8_t family)
{
	bool big = a->fate == NATREF_TOO_BIG;
	uint8_t type = family == 4 ? (big ? 3 : 11) : (big ? 2 : 3);

	return l4[ICMP_TYPE] == type && l4[ICMP_CODE] == (family == 4 && big ? 4 : 0) &&
	       get32(l4 + ICMP_REST) == (big ? a->mtu : 0);
}

/* The packet's header and at least eight bytes more. */
static bool is_quote_of(const uint8_t *frame, const struct parts *old, const uint8_t *quote,
			size_t bytes)
{
	size_t least = (old->family == 4 ? old->l4 - old->ip : IP6_BYTES) + QUOTED;

	return bytes >= least && bytes <= old->length && !memcmp(quote, frame + old->ip, bytes);
}

const char *natref_wrong_reply(const uint8_t *frame, size_t len, const struct natref_answer *a,
			       const uint8_t *out, size_t out_len)
{
	static uint8_t copy[NATREF_FRAME];
	struct parts old, p;

	if (!find_parts(frame, len, &old) || out_len > sizeof(copy))
		return "it cannot be read";
	memcpy(copy, out, out_len);
	if (!find_parts(copy, out_len, &p) || p.family != old.family || p.ip != old.ip ||
	    p.ip + p.length != out_len)
		return "its headers";
	if (!is_turned_link(frame, copy, p.ip))
		return "its link";
	if (memcmp(copy + p.src, frame + old.src + old.addr, p.addr) ||
	    memcmp(copy + p.src + p.addr, frame + old.src, p.addr))
		return "its addresses";
	if (!has_right_sums(copy, &p))
		return "a checksum";
	if (a->fate == NATREF_RESET)
		return is_reset_of(frame, &old, copy, &p) ? NULL : "the reset";
	if (p.proto != (p.family == 4 ? ICMP : ICMP6) || !is_error_of(a, copy + p.l4, p.family))
		return "the error";
	return is_quote_of(frame, &old, copy + p.l4 + ICMP_BYTES, l4_bytes(&p) - ICMP_BYTES)
		       ? NULL
		       : "the quote";
}
