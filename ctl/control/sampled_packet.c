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
	total = v == 4 ? be16(p->at + 2) : 40u + be16(p->at + 4);
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
		type = v == 4 ? ETHERTYPE_IP : v == 6 ? ETHERTYPE_IPV6 : 0;
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
