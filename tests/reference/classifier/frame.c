// SPDX-License-Identifier: GPL-2.0-only
// Reads the fields of an Ethernet frame that a filter can use.
#include "frame.h"

#include <string.h>

#include "../layout.h"
#include "names.h"
#include "ref.h"

#define TAGS_MAX       4
#define EXTENSIONS_MAX 8

enum {
#define X(id, word, meaning) MALFORMED_##id,
	REF_MALFORMED_WORDS(X)
#undef X
};

static const char *const malformed_words[] = {
#define X(id, word, meaning) word,
	REF_MALFORMED_WORDS(X)
#undef X
};

/* The rest of the packet. */
struct cursor {
	const uint8_t *at;
	size_t left;
};

static uint16_t be16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void skip(struct cursor *cursor, size_t bytes)
{
	cursor->at += bytes;
	cursor->left -= bytes;
}

static bool malformed(struct frame *frame, int reason)
{
	frame->malformed = malformed_words[reason];
	return false;
}

/* A first fragment must have the whole header (RFC 7112, RFC 1858): one word for all headers. */
static bool transport_short(struct frame *frame, int reason)
{
	if (frame->fragment == FRAGMENT_FIRST)
		reason = MALFORMED_FIRST_FRAGMENT;
	return malformed(frame, reason);
}

static void read_ports(const struct cursor *cursor, struct frame *frame)
{
	frame->has_ports = true;
	frame->sport = be16(cursor->at + UDP_SPORT); /* TCP, UDP and SCTP begin alike */
	frame->dport = be16(cursor->at + UDP_DPORT);
}

/* RFC 9293, 3.1 */
static bool parse_tcp(const struct cursor *cursor, struct frame *frame)
{
	size_t header;

	if (cursor->left < TCP_BYTES)
		return transport_short(frame, MALFORMED_TCP_SHORT);
	header = (size_t)(cursor->at[TCP_OFFSET] >> 4) * 4;
	if (header < TCP_BYTES)
		return malformed(frame, MALFORMED_TCP_OFFSET);
	if (header > cursor->left)
		return transport_short(frame, MALFORMED_TCP_OFFSET);
	read_ports(cursor, frame);
	frame->has_flags = true;
	frame->flags = cursor->at[TCP_FLAGS];
	return true;
}

/* RFC 768 */
static bool parse_udp(const struct cursor *cursor, struct frame *frame)
{
	uint16_t length;

	if (cursor->left < UDP_BYTES)
		return transport_short(frame, MALFORMED_UDP_SHORT);
	length = be16(cursor->at + UDP_LENGTH);
	if (length < UDP_BYTES)
		return malformed(frame, MALFORMED_UDP_LENGTH);
	if (frame->fragment == FRAGMENT_NONE && length > cursor->left)
		return malformed(frame, MALFORMED_UDP_LENGTH);
	read_ports(cursor, frame);
	return true;
}

/* RFC 9260, 3.1 */
static bool parse_sctp(const struct cursor *cursor, struct frame *frame)
{
	if (cursor->left < SCTP_BYTES)
		return transport_short(frame, MALFORMED_SCTP_SHORT);
	read_ports(cursor, frame);
	return true;
}

/* RFC 792, RFC 4443: every message of either has at least 8 bytes. */
static bool parse_icmp(const struct cursor *cursor, struct frame *frame, int reason)
{
	if (cursor->left < ICMP_BYTES)
		return transport_short(frame, reason);
	frame->has_type = true;
	frame->type = cursor->at[ICMP_TYPE];
	frame->code = cursor->at[ICMP_CODE];
	return true;
}

static bool parse_transport(const struct cursor *cursor, struct frame *frame)
{
	if (frame->fragment == FRAGMENT_LATER)
		return true;
	if (frame->proto == PROTO_TCP)
		return parse_tcp(cursor, frame);
	if (frame->proto == PROTO_UDP)
		return parse_udp(cursor, frame);
	if (frame->proto == PROTO_SCTP)
		return parse_sctp(cursor, frame);
	if (frame->proto == PROTO_ICMP && frame->family == 4)
		return parse_icmp(cursor, frame, MALFORMED_ICMP_SHORT);
	if (frame->proto == PROTO_ICMP6 && frame->family == 6)
		return parse_icmp(cursor, frame, MALFORMED_ICMP6_SHORT);
	return true;
}

/* RFC 791, 3.2 and RFC 8200, 4.5: a fragment has a payload, of a multiple of 8 bytes unless it is
 * the last, and does not end beyond the largest packet. */
static bool check_fragment(struct frame *frame, uint32_t offset, bool more, size_t payload)
{
	if (!offset && !more)
		return true;
	if (!payload || (more && payload % 8) || offset + payload > 65535)
		return malformed(frame, MALFORMED_FRAGMENT);
	return true;
}

/* RFC 791, 3.1 */
static bool parse_ip4(struct cursor *cursor, struct frame *frame)
{
	const uint8_t *ip = cursor->at;
	uint16_t offset;
	size_t header;

	if (cursor->left < IP4_BYTES)
		return malformed(frame, MALFORMED_IP4_SHORT);
	if (ip[IP4_VERSION] >> 4 != 4)
		return malformed(frame, MALFORMED_IP4_VERSION);
	header = (size_t)(ip[IP4_VERSION] & 15) * 4;
	if (header < IP4_BYTES)
		return malformed(frame, MALFORMED_IP4_IHL);
	frame->ip_len = be16(ip + IP4_LENGTH);
	if (frame->ip_len < header || frame->ip_len > cursor->left)
		return malformed(frame, MALFORMED_IP4_LENGTH);
	frame->family = 4;
	frame->dscp = ip[IP4_TOS] >> 2;
	frame->ttl = ip[IP4_TTL];
	frame->proto = ip[IP4_PROTO];
	frame->src = addr_from_bytes(4, ip + IP4_FROM);
	frame->dst = addr_from_bytes(4, ip + IP4_TO);
	offset = be16(ip + IP4_FRAGMENT);
	if (offset & 0x1fff)
		frame->fragment = FRAGMENT_LATER;
	else if (offset & 0x2000)
		frame->fragment = FRAGMENT_FIRST;
	cursor->left = frame->ip_len;
	skip(cursor, header);
	if (!check_fragment(frame, (offset & 0x1fffu) * 8, offset & 0x2000, cursor->left))
		return false;
	return parse_transport(cursor, frame);
}

/* RFC 8200, 4.5; the second byte is reserved, not a length. */
static bool parse_fragment_header(struct cursor *cursor, struct frame *frame)
{
	uint16_t offset;

	if (cursor->left < FRAGMENT_BYTES)
		return transport_short(frame, MALFORMED_EXT_SHORT);
	if (frame->fragment_header)
		return malformed(frame, MALFORMED_EXT_ORDER);
	frame->fragment_header = true;
	frame->proto = cursor->at[FRAGMENT_NEXT];
	offset = be16(cursor->at + FRAGMENT_OFFSET);
	if (offset & 0xfff8)
		frame->fragment = FRAGMENT_LATER;
	else if (offset & 1)
		frame->fragment = FRAGMENT_FIRST;
	skip(cursor, FRAGMENT_BYTES);
	return check_fragment(frame, offset & 0xfff8u, offset & 1, cursor->left);
}

/* RFC 8200, 4.2: next header, length in units of 8 bytes beyond the first. */
static bool parse_extension(struct cursor *cursor, struct frame *frame)
{
	size_t length;

	if (cursor->left < EXT_BYTES)
		return malformed(frame, MALFORMED_EXT_SHORT);
	length = ((size_t)cursor->at[EXT_LENGTH] + 1) * 8;
	if (length > cursor->left)
		return malformed(frame, MALFORMED_EXT_SHORT);
	if (frame->proto == 43 && cursor->at[EXT_OPTION_LENGTH]) /* RFC 8200, 4.4: segments left */
		frame->routed = true;
	frame->proto = cursor->at[EXT_NEXT];
	skip(cursor, length);
	return true;
}

static bool parse_extensions(struct cursor *cursor, struct frame *frame)
{
	for (int count = 1; frame->fragment != FRAGMENT_LATER; count++) {
		bool fragment = frame->proto == 44;

		if (!fragment && frame->proto != 0 && frame->proto != 43 && frame->proto != 60)
			return true;
		if (frame->proto == 0 && count > 1)
			return malformed(frame, MALFORMED_EXT_ORDER);
		if (count > EXTENSIONS_MAX)
			return malformed(frame, MALFORMED_EXT_DEEP);
		if (fragment ? !parse_fragment_header(cursor, frame)
			     : !parse_extension(cursor, frame))
			return false;
	}
	return true;
}

/* RFC 8200, 3 */
static bool parse_ip6(struct cursor *cursor, struct frame *frame)
{
	const uint8_t *ip = cursor->at;
	uint16_t payload;

	if (cursor->left < IP6_BYTES)
		return malformed(frame, MALFORMED_IP6_SHORT);
	if (ip[IP6_VERSION] >> 4 != 6)
		return malformed(frame, MALFORMED_IP6_VERSION);
	payload = be16(ip + IP6_LENGTH);
	if (payload > cursor->left - IP6_BYTES)
		return malformed(frame, MALFORMED_IP6_LENGTH);
	frame->family = 6;
	frame->ip_len = IP6_BYTES + (uint32_t)payload;
	frame->dscp = (uint8_t)(be16(ip + IP6_VERSION) >> 6 & 63);
	frame->proto = ip[IP6_NEXT];
	frame->ttl = ip[IP6_HOPS];
	frame->src = addr_from_bytes(6, ip + IP6_FROM);
	frame->dst = addr_from_bytes(6, ip + IP6_TO);
	cursor->left = frame->ip_len;
	skip(cursor, IP6_BYTES);
	return parse_extensions(cursor, frame) && parse_transport(cursor, frame);
}

/* IEEE 802.1Q: up to four tags; the outermost one's VID counts. */
static bool parse_tags(struct cursor *cursor, struct frame *frame)
{
	for (int count = 1; frame->ethertype == 0x8100 || frame->ethertype == 0x88a8; count++) {
		if (count > TAGS_MAX)
			return malformed(frame, MALFORMED_VLAN_DEEP);
		if (cursor->left < TAG_BYTES)
			return malformed(frame, MALFORMED_VLAN_SHORT);
		if (count == 1)
			frame->vlan = be16(cursor->at + TAG_TCI) & 0x0fff;
		frame->ethertype = be16(cursor->at + TAG_TYPE);
		skip(cursor, TAG_BYTES);
	}
	return true;
}

static bool parse_ethernet(struct cursor *cursor, struct frame *frame)
{
	if (cursor->left < ETHER_BYTES)
		return malformed(frame, MALFORMED_ETH_SHORT);
	for (int i = 0; i < 6; i++)
		frame->mac = frame->mac << 8 | cursor->at[6 + i];
	frame->ethertype = be16(cursor->at + ETHER_TYPE);
	skip(cursor, ETHER_BYTES);
	if (!parse_tags(cursor, frame))
		return false;
	if (frame->ethertype == ETHERTYPE_IP4)
		return parse_ip4(cursor, frame);
	if (frame->ethertype == ETHERTYPE_IP6)
		return parse_ip6(cursor, frame);
	return true;
}

void frame_parse(const uint8_t *bytes, size_t len, struct frame *ret_frame)
{
	struct cursor cursor = {.at = bytes, .left = len};

	memset(ret_frame, 0, sizeof(*ret_frame));
	ret_frame->frame_len = (uint32_t)len;
	parse_ethernet(&cursor, ret_frame);
}

bool frame_is_nd(const struct frame *frame)
{
	return frame->family == 6 && frame->has_type && frame->type >= 133 && frame->type <= 136 &&
	       frame->ttl == 255 && !frame->fragment_header && !frame->routed;
}
