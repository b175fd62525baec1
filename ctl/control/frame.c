// SPDX-License-Identifier: GPL-2.0-only
// Writes test packets: Ethernet, VLAN, IP and transport headers in order, checksums last.
#include "ctl/control/frame.h"

#include <errno.h>
#include <string.h>

#include "common/limits-policy.h"

#define ETHERTYPE_VLAN  0x8100
#define PROTO_ICMP      1
#define PROTO_TCP       6
#define PROTO_UDP       17
#define PROTO_FRAGMENT  44
#define PROTO_ICMP6     58
#define PROTO_SCTP      132
#define IP4_BYTES       20
#define IP6_BYTES       40
#define EXTENSION_BYTES 8
#define FRAGMENT_OFFSET 64 // bytes
#define TCP_ACK         0x10

// A frame being written. at: where the next header goes; the rest of the frame is zero.
struct built_frame {
	const struct resolved_packet *p;
	uint8_t *at;
	size_t headers; // bytes of Ethernet and VLAN
	size_t length;  // length of the IP packet, or of the frame if it has no IP
};

static void put8(struct built_frame *f, unsigned value)
{
	*f->at++ = (uint8_t)value;
}

static void put16(struct built_frame *f, unsigned value)
{
	put8(f, value >> 8 & 0xff);
	put8(f, value & 0xff);
}

static void put32(struct built_frame *f, uint32_t value)
{
	put16(f, value >> 16);
	put16(f, value & 0xffff);
}

static void put_bytes(struct built_frame *f, const void *bytes, size_t n)
{
	memcpy(f->at, bytes, n);
	f->at += n;
}

static void write16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

// RFC 1071: big-endian words, an odd last byte filled up with zero.
static uint32_t sum(uint32_t start, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		start += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return start;
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

// CRC32c (Castagnoli), bit by bit, as SCTP wants it: RFC 9260 appendix A.
static uint32_t crc32c(const uint8_t *bytes, size_t n)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

// Has the packet an ICMP header: the ICMP of its family?
static bool has_icmp(const struct resolved_packet *p)
{
	return p->proto == (p->from.family == 4 ? PROTO_ICMP : PROTO_ICMP6);
}

// Bytes of the transport header that Weir reads; 0: it does not know the protocol.
static size_t transport_bytes(const struct resolved_packet *p)
{
	if (has_icmp(p) || p->proto == PROTO_UDP)
		return 8;
	return p->proto == PROTO_TCP ? 20 : p->proto == PROTO_SCTP ? 12 : 0;
}

static size_t ip_bytes(const struct resolved_packet *p)
{
	if (p->from.family == 4)
		return IP4_BYTES;
	return IP6_BYTES + (p->fragment ? EXTENSION_BYTES : 0);
}

// The smallest possible p->length; an empty fragment is not a fragment.
static size_t least(const struct built_frame *f)
{
	if (!f->p->ip)
		return f->headers;
	return ip_bytes(f->p) + (f->p->fragment ? 1 : transport_bytes(f->p));
}

// Hop-by-hop, routing, fragment and destination options announce a header, not a payload.
static bool is_extension(uint8_t proto)
{
	return proto == 0 || proto == 43 || proto == PROTO_FRAGMENT || proto == 60;
}

// Sets f->length.
static int check(struct built_frame *f, struct err *err)
{
	const struct resolved_packet *p = f->p;
	size_t max = p->ip ? FRAME_MAX - f->headers : FRAME_MAX;

	if (p->ip && p->from.family == 6 && !p->fragment && is_extension(p->proto))
		return err_input(err, "protocol %u is an extension header in IPv6", p->proto);
	f->length = p->length ? p->length : least(f);
	if (f->length < least(f))
		return err_input(err, "length %zu is too small: the headers take %zu bytes",
				 f->length, least(f));
	if (f->length > max)
		return err_input(err, "length %zu is too large: the maximum is %zu", f->length,
				 max);
	return 0;
}

static void write_ethernet(struct built_frame *f)
{
	static const uint8_t target[6] = {2, 0, 0, 0, 0, 2};
	uint64_t source = f->p->mac_given ? f->p->mac : POLICY_EXPECT_MAC;

	put_bytes(f, target, sizeof(target));
	put16(f, (unsigned)(source >> 32 & 0xffff));
	put32(f, (uint32_t)source);
	if (f->p->vlan) {
		put16(f, ETHERTYPE_VLAN);
		put16(f, f->p->vlan);
	}
	put16(f, f->p->ethertype);
}

static void write_ip4(struct built_frame *f)
{
	const struct resolved_packet *p = f->p;
	uint8_t *header = f->at;

	put16(f, 0x4500);
	put16(f, (unsigned)f->length);
	put16(f, p->fragment); // identification
	put16(f, p->fragment ? FRAGMENT_OFFSET / 8 : 0x4000);
	put8(f, p->ttl);
	put8(f, p->proto);
	put16(f, 0);
	put_bytes(f, p->from.bytes, 4);
	put_bytes(f, p->to.bytes, 4);
	write16(header + 10, fold(sum(0, header, IP4_BYTES)));
}

static void write_ip6(struct built_frame *f)
{
	const struct resolved_packet *p = f->p;

	put32(f, 0x60000000);
	put16(f, (unsigned)f->length - IP6_BYTES);
	put8(f, p->fragment ? PROTO_FRAGMENT : p->proto);
	put8(f, p->ttl);
	put_bytes(f, p->from.bytes, 16);
	put_bytes(f, p->to.bytes, 16);
	if (!p->fragment)
		return;
	put8(f, p->proto);
	put8(f, 0);
	put16(f, FRAGMENT_OFFSET); // in 8 bytes, above three bits of which none is set
	put32(f, 1);               // identification
}

static void write_tcp(struct built_frame *f)
{
	put32(f, 1); // sequence number
	put32(f, f->p->flags & TCP_ACK ? 1 : 0);
	put8(f, 0x50);
	put8(f, f->p->flags);
	put16(f, 0xffff); // window
	put32(f, 0);      // checksum, urgent pointer
}

static void write_transport(struct built_frame *f, size_t length)
{
	const struct resolved_packet *p = f->p;

	if (has_icmp(p)) {
		put8(f, p->type);
		put8(f, p->code);
		return;
	}
	put16(f, p->sport);
	put16(f, p->dport);
	if (p->proto == PROTO_TCP)
		write_tcp(f);
	else if (p->proto == PROTO_UDP)
		put16(f, (unsigned)length);
}

// The pseudo-header of RFC 9293 section 3.1 and RFC 8200 section 8.1.
static uint32_t pseudo_sum(const struct resolved_packet *p, size_t length)
{
	size_t bytes = p->from.family == 4 ? 4 : 16;

	return sum(sum((uint32_t)length + p->proto, p->from.bytes, bytes), p->to.bytes, bytes);
}

static void write_checksum(const struct resolved_packet *p, uint8_t *header, size_t length)
{
	uint32_t pseudo = p->proto == PROTO_ICMP ? 0 : pseudo_sum(p, length);
	uint32_t crc;
	uint16_t check;

	if (p->proto == PROTO_SCTP) {
		crc = crc32c(header, length);
		for (int i = 0; i < 4; i++)
			header[8 + i] = (uint8_t)(crc >> 8 * i);
		return;
	}
	check = fold(sum(pseudo, header, length));
	if (p->proto == PROTO_UDP && !check)
		check = 0xffff; // RFC 768: 0 means no checksum
	write16(header + (p->proto == PROTO_TCP ? 16 : p->proto == PROTO_UDP ? 6 : 2), check);
}

static void write_ip(struct built_frame *f)
{
	const struct resolved_packet *p = f->p;
	size_t payload = f->length - ip_bytes(p);
	uint8_t *transport;

	if (p->from.family == 4)
		write_ip4(f);
	else
		write_ip6(f);
	transport = f->at;
	if (p->fragment || !transport_bytes(p))
		return;
	write_transport(f, payload);
	write_checksum(p, transport, payload);
}

static struct built_frame frame_of(const struct resolved_packet *p)
{
	return (struct built_frame){.p = p, .headers = p->vlan ? 18 : 14};
}

int frame_check(const struct resolved_packet *p, struct err *err)
{
	struct built_frame f = frame_of(p);

	return check(&f, err);
}

int frame_build(const struct resolved_packet *p, uint8_t ret[FRAME_MAX], size_t *ret_length,
		struct err *err)
{
	struct built_frame f = frame_of(p);
	int code = check(&f, err);

	if (code)
		return code;
	memset(ret, 0, FRAME_MAX);
	f.at = ret;
	write_ethernet(&f);
	if (p->ip)
		write_ip(&f);
	*ret_length = f.length + (p->ip ? f.headers : 0);
	return 0;
}
