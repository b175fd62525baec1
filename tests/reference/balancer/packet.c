// SPDX-License-Identifier: GPL-2.0-only
// Writes Ethernet, IP and a transport header one after the other; checksums stay zero.
#include "tests/reference/balancer/packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/reference/layout.h"

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static size_t transport_bytes(const struct flow *f)
{
	return f->proto == IPPROTO_TCP   ? TCP_BYTES
	       : f->proto == IPPROTO_UDP ? UDP_BYTES
					 : SCTP_BYTES + CHUNK_BYTES;
}

static uint8_t *put_ip4(uint8_t *at, const struct flow *f)
{
	at[IP4_VERSION] = 0x45;
	put16(at + IP4_LENGTH, (uint16_t)(IP4_BYTES + transport_bytes(f)));
	at[IP4_TTL] = 64;
	at[IP4_PROTO] = f->proto;
	memcpy(at + IP4_FROM, f->src.bytes, 4);
	memcpy(at + IP4_TO, f->dst.bytes, 4);
	return at + IP4_BYTES;
}

static uint8_t *put_ip6(uint8_t *at, const struct flow *f)
{
	at[IP6_VERSION] = 0x60;
	put16(at + IP6_LENGTH, (uint16_t)transport_bytes(f));
	at[IP6_NEXT] = f->proto;
	at[IP6_HOPS] = 64;
	memcpy(at + IP6_FROM, f->src.bytes, 16);
	memcpy(at + IP6_TO, f->dst.bytes, 16);
	return at + IP6_BYTES;
}

// The flow selects one of the kinds.
static uint8_t tcp_flags(const struct flow *f, enum packet_kind kind)
{
	static const uint8_t flags[][4] = {
		[PACKET_OTHER] = {0x10, 0x12, 0x18, 0x30},
		[PACKET_OPENS] = {0x02, 0xc2, 0x02, 0xc2}, // SYN; with ECE and CWR
		[PACKET_CLOSES] = {0x11, 0x04, 0x19, 0x14},
	};

	return flags[kind][f->sport % 4];
}

static void put_transport(uint8_t *at, const struct flow *f, enum packet_kind kind)
{
	uint8_t *chunk = at + SCTP_BYTES;

	put16(at + UDP_SPORT, f->sport); // TCP, UDP and SCTP begin alike
	put16(at + UDP_DPORT, f->dport);
	if (f->proto == IPPROTO_TCP) {
		at[TCP_OFFSET] = 0x50;
		at[TCP_FLAGS] = tcp_flags(f, kind);
	} else if (f->proto == IPPROTO_UDP) {
		put16(at + UDP_LENGTH, (uint16_t)transport_bytes(f));
	} else {
		at[SCTP_TAG + 3] = kind == PACKET_OPENS ? 0 : 1; // the tag is zero in an INIT
		chunk[CHUNK_TYPE] = kind == PACKET_OPENS ? 1 : 0;
		put16(chunk + CHUNK_LENGTH, CHUNK_BYTES);
	}
}

size_t packet_make(const struct flow *f, enum packet_kind kind, uint8_t ret[PACKET_MAX])
{
	static const uint8_t macs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	bool v4 = f->src.family == 4;
	uint8_t *at = ret;

	memset(ret, 0, PACKET_MAX);
	memcpy(at, macs, sizeof(macs));
	put16(at + ETHER_TYPE, v4 ? 0x0800 : 0x86dd);
	at += ETHER_BYTES;
	at = v4 ? put_ip4(at, f) : put_ip6(at, f);
	put_transport(at, f, kind);
	return (size_t)(at - ret) + transport_bytes(f);
}

bool packet_target(const uint8_t *frame, size_t len, uint32_t *ret)
{
	const uint8_t *type = frame + ETHER_TYPE;
	bool v4 = len >= ETHER_BYTES + IP4_BYTES && type[0] == 0x08 && type[1] == 0x00;
	bool v6 = len >= ETHER_BYTES + IP6_BYTES && type[0] == 0x86 && type[1] == 0xdd;

	if (!v4 && !v6)
		return false;
	memcpy(ret, frame + ETHER_BYTES + (v4 ? IP4_TO_END : IP6_TO_END) - sizeof(*ret),
	       sizeof(*ret));
	*ret = ntohl(*ret);
	return true;
}
