// SPDX-License-Identifier: GPL-2.0-only
// Lays Ethernet, IP and a transport header one behind the other; checksums are left zero.
#include "tests/reference/balancer/packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define ETH_BYTES 14
#define IP4_BYTES 20
#define IP6_BYTES 40

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static size_t transport_bytes(const struct flow *f)
{
	return f->proto == IPPROTO_TCP ? 20 : f->proto == IPPROTO_UDP ? 8 : 16;
}

static uint8_t *put_ip4(uint8_t *at, const struct flow *f)
{
	at[0] = 0x45;
	put16(at + 2, (uint16_t)(IP4_BYTES + transport_bytes(f)));
	at[8] = 64;
	at[9] = f->proto;
	memcpy(at + 12, f->src.bytes, 4);
	memcpy(at + 16, f->dst.bytes, 4);
	return at + IP4_BYTES;
}

static uint8_t *put_ip6(uint8_t *at, const struct flow *f)
{
	at[0] = 0x60;
	put16(at + 4, (uint16_t)transport_bytes(f));
	at[6] = f->proto;
	at[7] = 64;
	memcpy(at + 8, f->src.bytes, 16);
	memcpy(at + 24, f->dst.bytes, 16);
	return at + IP6_BYTES;
}

// Which kind it is says the flow.
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
	put16(put16(at, f->sport), f->dport);
	if (f->proto == IPPROTO_TCP) {
		at[12] = 0x50;
		at[13] = tcp_flags(f, kind);
	} else if (f->proto == IPPROTO_UDP) {
		put16(at + 4, (uint16_t)transport_bytes(f));
	} else {
		at[7] = kind == PACKET_OPENS ? 0 : 1; // of the tag, which is zero in an INIT
		at[12] = kind == PACKET_OPENS ? 1 : 0;
		at[15] = 4;
	}
}

size_t packet_make(const struct flow *f, enum packet_kind kind, uint8_t ret[PACKET_MAX])
{
	static const uint8_t macs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	bool v4 = f->src.family == 4;
	uint8_t *at = ret;

	memset(ret, 0, PACKET_MAX);
	memcpy(at, macs, sizeof(macs));
	at = put16(at + sizeof(macs), v4 ? 0x0800 : 0x86dd);
	at = v4 ? put_ip4(at, f) : put_ip6(at, f);
	put_transport(at, f, kind);
	return (size_t)(at - ret) + transport_bytes(f);
}

bool packet_target(const uint8_t *frame, size_t len, uint32_t *ret)
{
	bool v4 = len >= ETH_BYTES + IP4_BYTES && frame[12] == 0x08 && frame[13] == 0x00;
	bool v6 = len >= ETH_BYTES + IP6_BYTES && frame[12] == 0x86 && frame[13] == 0xdd;

	if (!v4 && !v6)
		return false;
	memcpy(ret, frame + ETH_BYTES + (v4 ? IP4_BYTES : IP6_BYTES) - sizeof(*ret), sizeof(*ret));
	*ret = ntohl(*ret);
	return true;
}
