// SPDX-License-Identifier: GPL-2.0-only
// Frames of the model of nat and fullnat: what a packet says, and the same packet with other names.
#include <string.h>

#include "../layout.h"
#include "nat_model.h"

#define TCP         6
#define UDP         17
#define ICMP        1
#define ICMP6       58
#define QUOTED      8 /* bytes after the quoted IP header, at least */
#define TYPE_IP4    0x0800
#define TYPE_IP6    0x86dd
#define TYPE_TAG    0x8100
#define TYPE_SVLAN  0x88a8
#define SHORT_FRAME 64 /* may be padded */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
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
	uint16_t vlan;
	uint8_t family, proto;
};

static bool find_ip(const uint8_t *frame, size_t len, struct parts *p)
{
	uint16_t type = get16(frame + ETHER_TYPE);

	p->ip = ETHER_BYTES;
	if (type == TYPE_TAG || type == TYPE_SVLAN) {
		p->vlan = get16(frame + p->ip + TAG_TCI) & 0xfff;
		type = get16(frame + p->ip + TAG_TYPE);
		p->ip += TAG_BYTES;
	}
	p->family = type == TYPE_IP4 ? 4 : type == TYPE_IP6 ? 6 : 0;
	return p->family && len >= p->ip + (p->family == 4 ? IP4_BYTES : IP6_BYTES) + UDP_BYTES;
}

static void find_fields(const uint8_t *ip, struct parts *p)
{
	bool v4 = p->family == 4;

	p->addr = v4 ? 4 : 16;
	p->src = p->ip + (v4 ? IP4_FROM : IP6_FROM);
	p->l4 = p->ip + (v4 ? IP4_BYTES : IP6_BYTES);
	p->proto = ip[v4 ? IP4_PROTO : IP6_NEXT];
	p->length = v4 ? get16(ip + IP4_LENGTH) : IP6_BYTES + get16(ip + IP6_LENGTH);
	p->sum = p->l4 + (p->proto == TCP ? TCP_SUM : UDP_SUM);
}

static bool find_parts(const uint8_t *frame, size_t len, struct parts *p)
{
	const uint8_t *ip;

	memset(p, 0, sizeof(*p));
	if (len < ETHER_BYTES + TAG_BYTES || !find_ip(frame, len, p))
		return false;
	ip = frame + p->ip;
	find_fields(ip, p);
	if (p->family == 4 && (ip[IP4_VERSION] != 0x45 || get16(ip + IP4_FRAGMENT) & 0x3fff))
		return false;
	return p->ip + p->length <= len;
}

static bool has_ports(const struct parts *p)
{
	return p->proto == TCP || p->proto == UDP;
}

static bool is_error(const uint8_t *frame, const struct parts *p)
{
	uint8_t type = frame[p->l4 + ICMP_TYPE];

	if (p->family == 4)
		return p->proto == ICMP && (type == 3 || type == 11 || type == 12);
	return p->proto == ICMP6 && type >= 1 && type <= 4;
}

/* Where the quote of an error is, as if it were a frame. false: it cannot be followed. */
static bool find_quote(const uint8_t *frame, const struct parts *p, struct parts *ret)
{
	const uint8_t *ip;

	*ret = (struct parts){.family = p->family, .ip = p->l4 + ICMP_BYTES};
	ip = frame + ret->ip;
	if (p->length < (ret->ip - p->ip) + (p->l4 - p->ip) + QUOTED)
		return false;
	find_fields(ip, ret);
	if (p->family == 4 ? ip[IP4_VERSION] != 0x45 || get16(ip + IP4_FRAGMENT) & 0x1fff
			   : ip[IP6_VERSION] >> 4 != 6)
		return false;
	return !memcmp(frame + ret->src, frame + p->src + p->addr, p->addr);
}

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

static uint64_t pseudo(const uint8_t *frame, const struct parts *p)
{
	return add_words(p->proto + p->length - (p->l4 - p->ip), frame + p->src, 2 * p->addr);
}

/* Needs no more work: see is_ready() for the same rules, and xdp/short.bpf.h for their reasons. */
static bool is_simple(const uint8_t *frame, size_t len, const struct parts *p)
{
	const uint8_t *l4 = frame + p->l4;
	uint16_t sum = get16(frame + p->sum);

	if (frame[p->ip + (p->family == 4 ? IP4_TTL : IP6_HOPS)] <= 1)
		return false;
	if (len != p->ip + p->length && len > SHORT_FRAME)
		return false;
	if (!has_ports(p))
		return true;
	if (p->proto == UDP && get16(l4 + UDP_LENGTH) != p->length - (p->l4 - p->ip))
		return false;
	/* A sender may have left the rest of the sum to its device. */
	return sum != fold(pseudo(frame, p)) && !(sum == 0 && fold(pseudo(frame, p)) == 0xffff);
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

bool natref_read(const uint8_t *frame, size_t len, uint16_t number, struct natref_packet *ret)
{
	struct parts p, q;

	if (!find_parts(frame, len, &p) || !is_simple(frame, len, &p))
		return false;
	if (!has_ports(&p) && (!is_error(frame, &p) || !find_quote(frame, &p, &q)))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->family = p.family;
	ret->proto = p.proto;
	ret->flags = p.proto == TCP ? frame[p.l4 + TCP_FLAGS] : 0;
	memcpy(ret->src, frame + p.src, p.addr);
	memcpy(ret->dst, frame + p.src + p.addr, p.addr);
	ret->sport = get16(frame + p.l4 + TCP_SPORT);
	ret->dport = get16(frame + p.l4 + TCP_DPORT);
	ret->length = p.length;
	memcpy(ret->from.mac, frame + ETHER_FROM, 6);
	memcpy(ret->from.own, frame + ETHER_TO, 6);
	ret->from.vlan = p.vlan;
	ret->from.number = number;
	if (!has_ports(&p))
		read_quote(frame, &q, ret);
	return true;
}

/* Both checksums, from nothing but the new packet. */
static void put_sums(uint8_t *frame, const struct parts *p)
{
	size_t at = has_ports(p) ? p->sum : p->l4 + ICMP_SUM;
	bool has_sum = get16(frame + at) || p->proto != UDP;
	uint8_t *ip = frame + p->ip;
	uint16_t sum;

	if (p->family == 4) {
		put16(ip + IP4_SUM, 0);
		put16(ip + IP4_SUM, (uint16_t)~fold(add_words(0, ip, IP4_BYTES)));
	}
	put16(frame + at, 0);
	if (!has_sum)
		return;
	sum = (uint16_t)~fold(add_words(p->proto == ICMP ? 0 : pseudo(frame, p), frame + p->l4,
					p->length - (p->l4 - p->ip)));
	put16(frame + at, sum || p->proto != UDP ? sum : 0xffff);
}

/* A checksum whose bytes have changed from a sum to another one. */
static void move_sum(uint8_t *at, uint64_t from, uint64_t to, bool udp)
{
	uint16_t sum = get16(at);

	if (udp && !sum)
		return;
	sum = (uint16_t)~fold((uint64_t)(uint16_t)~sum + (uint16_t)~fold(from) + fold(to));
	put16(at, udp && !sum ? 0xffff : sum);
}

/* The quote with other names. Most of its bytes may be missing, so its sums can only be moved. */
static void put_quote(uint8_t *frame, const struct parts *p, const struct natref_quote *names)
{
	uint64_t addresses, ports, new_addresses, new_ports;
	struct parts q;

	find_quote(frame, p, &q);
	addresses = add_words(0, frame + q.src, 2 * q.addr);
	ports = add_words(0, frame + q.l4, 4);
	memcpy(frame + q.src, names->src, q.addr);
	memcpy(frame + q.src + q.addr, names->dst, q.addr);
	put16(frame + q.l4 + TCP_SPORT, names->sport);
	put16(frame + q.l4 + TCP_DPORT, names->dport);
	new_addresses = add_words(0, frame + q.src, 2 * q.addr);
	new_ports = add_words(0, frame + q.l4, 4);
	if (q.family == 4)
		move_sum(frame + q.ip + IP4_SUM, addresses, new_addresses, false);
	if (has_ports(&q) && q.sum + 2 <= p->ip + p->length)
		move_sum(frame + q.sum, addresses + ports, new_addresses + new_ports,
			 q.proto == UDP);
}

size_t natref_write(const uint8_t *frame, size_t len, const struct natref_answer *a,
		    uint8_t out[NATREF_FRAME])
{
	struct parts old, p;
	size_t ip = a->to.vlan ? ETHER_BYTES + TAG_BYTES : ETHER_BYTES;

	if (!find_parts(frame, len, &old))
		return 0;
	memcpy(out + ETHER_TO, a->to.mac, 6);
	memcpy(out + ETHER_FROM, a->to.own, 6);
	if (a->to.vlan) {
		put16(out + ETHER_TYPE, TYPE_TAG);
		put16(out + ETHER_BYTES + TAG_TCI, a->to.vlan);
	}
	put16(out + ip - 2, old.family == 4 ? TYPE_IP4 : TYPE_IP6);
	memcpy(out + ip, frame + old.ip, len - old.ip);
	len = len - old.ip + ip;
	find_parts(out, len, &p);
	out[p.ip + (p.family == 4 ? IP4_TTL : IP6_HOPS)]--;
	if (!has_ports(&p))
		put_quote(out, &p, &a->quote);
	memcpy(out + p.src, a->src, p.addr);
	memcpy(out + p.src + p.addr, a->dst, p.addr);
	if (has_ports(&p)) {
		put16(out + p.l4 + TCP_SPORT, a->sport);
		put16(out + p.l4 + TCP_DPORT, a->dport);
	}
	put_sums(out, &p);
	return len;
}
