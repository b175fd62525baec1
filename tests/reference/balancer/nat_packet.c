// SPDX-License-Identifier: GPL-2.0-only
// Frames of the model of nat and fullnat: what a packet says, and the same packet with other names.
#include <string.h>

#include "../layout.h"
#include "nat_model.h"

#define TCP         6
#define UDP         17
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
	return (p->proto == TCP || p->proto == UDP) && p->ip + p->length <= len;
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
	if (p->proto == UDP && get16(l4 + UDP_LENGTH) != p->length - (p->l4 - p->ip))
		return false;
	/* A sender may have left the rest of the sum to its device. */
	return sum != fold(pseudo(frame, p)) && !(sum == 0 && fold(pseudo(frame, p)) == 0xffff);
}

bool natref_read(const uint8_t *frame, size_t len, uint16_t number, struct natref_packet *ret)
{
	struct parts p;

	if (!find_parts(frame, len, &p) || !is_simple(frame, len, &p))
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
	return true;
}

/* Both checksums, from nothing but the new packet. */
static void put_sums(uint8_t *frame, const struct parts *p)
{
	bool has_sum = get16(frame + p->sum) || p->proto == TCP;
	uint8_t *ip = frame + p->ip;
	uint16_t sum;

	if (p->family == 4) {
		put16(ip + IP4_SUM, 0);
		put16(ip + IP4_SUM, (uint16_t)~fold(add_words(0, ip, IP4_BYTES)));
	}
	put16(frame + p->sum, 0);
	if (!has_sum)
		return;
	sum = (uint16_t)~fold(
		add_words(pseudo(frame, p), frame + p->l4, p->length - (p->l4 - p->ip)));
	put16(frame + p->sum, sum || p->proto == TCP ? sum : 0xffff);
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
	memcpy(out + p.src, a->src, p.addr);
	memcpy(out + p.src + p.addr, a->dst, p.addr);
	put16(out + p.l4 + TCP_SPORT, a->sport);
	put16(out + p.l4 + TCP_DPORT, a->dport);
	put_sums(out, &p);
	return len;
}
