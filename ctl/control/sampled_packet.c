// SPDX-License-Identifier: GPL-2.0-only
// Finds the packet after the link header and the headers of a tunnel or an ICMP error.
#include "ctl/control/sampled_packet.h"

#include <net/ethernet.h>
#include <string.h>

#include "common/counters.h"

#define ETHERTYPE_QINQ 0x88a8
#define ICMP_HEAD      8

struct rest {
	const uint8_t *at;
	size_t left;
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void skip(struct rest *p, size_t n)
{
	n = n < p->left ? n : p->left;
	p->at += n;
	p->left -= n;
}

// The ethertype after all tags; the part begins after it.
static uint16_t skip_link(struct rest *p)
{
	uint16_t type;

	if (p->left < ETHER_HDR_LEN)
		return 0;
	type = be16(p->at + 12);
	skip(p, ETHER_HDR_LEN);
	for (; (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) && p->left >= 4; skip(p, 4))
		type = be16(p->at + 2);
	return type;
}

// The version of an IP header that is there whole; 0: none.
static unsigned version(const struct rest *p)
{
	unsigned v = p->left ? p->at[0] >> 4 : 0;

	return (v == 4 && p->left >= 20) || (v == 6 && p->left >= 40) ? v : 0;
}

// Bytes of the packet by its header.
static uint32_t total_of(const struct rest *p, unsigned v)
{
	return v == 4 ? be16(p->at + 2) : 40u + be16(p->at + 4);
}

static uint16_t ethertype_of(unsigned v)
{
	return v == 4 ? ETHERTYPE_IP : v == 6 ? ETHERTYPE_IPV6 : 0;
}

// A packet to a backend is longer by the headers of its tunnel; an answer quotes the packet.
static uint32_t front_of(const struct sampled *s, const struct rest *p)
{
	unsigned v = version(p);
	uint32_t total;

	if (!v)
		return 0;
	if (s->reason == REASON_PASS_TOO_BIG || s->reason == REASON_PASS_TTL)
		return (v == 4 ? 20 : 40) + ICMP_HEAD;
	if (s->reason != REASON_PASS_SERVICE && s->reason != REASON_DROP_NO_NEXT_HOP)
		return 0;
	total = total_of(p, v);
	return total > s->bytes ? total - s->bytes : 0;
}

static void swap(struct addr *a, struct addr *b)
{
	struct addr c = *a;

	*a = *b;
	*b = c;
}

void sampled_read(const struct sampled *sample, struct sampled_packet *ret)
{
	size_t captured = sample->captured < sizeof(sample->packet) ? sample->captured
								    : sizeof(sample->packet);
	struct rest p = {sample->packet, captured};
	uint8_t frame[ETHER_HDR_LEN + WEIR_SAMPLE_SNAP] = {0};
	uint16_t type = skip_link(&p);
	unsigned v;

	*ret = (struct sampled_packet){.front = front_of(sample, &p)};
	skip(&p, ret->front);
	v = version(&p);
	// An answer to a check has another ethertype.
	if (ret->front || sample->reason == REASON_PASS_ANSWER)
		type = ethertype_of(v);
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
	memcpy(frame + ETHER_HDR_LEN, p.at, p.left);
	packet_read(frame, ETHER_HDR_LEN + p.left, &ret->fields);
	if (!ret->fields.ip)
		return;
	ret->ttl = p.at[v == 4 ? 8 : 7];
	if (sample->reason == REASON_PASS_ECHO) // the answer is in the frame
		swap(&ret->fields.from, &ret->fields.to);
}

void sampled_fill(struct sampled *ret, const uint8_t *frame, size_t captured, uint32_t front)
{
	struct rest p = {frame, captured};
	unsigned v;

	ret->captured = (uint16_t)(captured < sizeof(ret->packet) ? captured : sizeof(ret->packet));
	memcpy(ret->packet, frame, ret->captured);
	skip_link(&p);
	skip(&p, front);
	v = version(&p);
	ret->bytes = v ? total_of(&p, v) : ret->length;
}

size_t sampled_restore(const uint8_t *frame, size_t captured, uint32_t front, uint8_t *ret,
		       size_t *length)
{
	struct rest p = {frame, captured};
	size_t link, whole;
	uint16_t type;
	unsigned v;

	skip_link(&p);
	link = captured - p.left;
	skip(&p, front);
	v = version(&p);
	if (!front || !v || link < ETHER_HDR_LEN) {
		memcpy(ret, frame, captured);
		return captured;
	}
	type = ethertype_of(v);
	memcpy(ret, frame, link);
	ret[link - 2] = (uint8_t)(type >> 8);
	ret[link - 1] = (uint8_t)type;
	whole = link + total_of(&p, v);
	if (p.left > whole - link)
		p.left = whole - link;
	memcpy(ret + link, p.at, p.left);
	*length = whole;
	return link + p.left;
}
