// SPDX-License-Identifier: GPL-2.0-only
// Writes headers one after the other.
#include "tests/datapath/frame.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#define ETH_BYTES 14
#define UDP_BYTES 8

static void put8(struct frame *f, unsigned value)
{
	assert(f->len < FRAME_MAX);
	f->at[f->len++] = (uint8_t)value;
}

static void put16(struct frame *f, size_t value)
{
	put8(f, (unsigned)value >> 8);
	put8(f, (unsigned)value & 0xff);
}

static void put(struct frame *f, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put8(f, ((const uint8_t *)bytes)[i]);
}

static void put_ether(struct frame *f, unsigned ethertype)
{
	static const uint8_t macs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	f->len = 0;
	put(f, macs, sizeof(macs));
	put16(f, ethertype);
}

static void put_ip4(struct frame *f, const struct addr *src, const struct addr *dst, unsigned proto,
		    size_t payload)
{
	put16(f, 0x4500);
	put16(f, 20 + payload);
	put16(f, 1);
	put16(f, 0);
	put8(f, 64);
	put8(f, proto);
	put16(f, 0);
	put(f, src->bytes, 4);
	put(f, dst->bytes, 4);
}

static void put_ip6(struct frame *f, const struct addr *src, const struct addr *dst, unsigned next,
		    size_t payload)
{
	put16(f, 0x6000);
	put16(f, 0);
	put16(f, payload);
	put8(f, next);
	put8(f, 64);
	put(f, src->bytes, 16);
	put(f, dst->bytes, 16);
}

static void put_udp(struct frame *f, size_t payload)
{
	put16(f, 1000);
	put16(f, 2000);
	put16(f, UDP_BYTES + payload);
	put16(f, 0);
	for (size_t i = 0; i < payload; i++)
		put8(f, i & 0xff);
}

static struct addr address(const char *text)
{
	struct addr a;
	int code = addr_parse(text, strlen(text), &a, NULL);

	assert(!code);
	return a;
}

void frame_udp_between(struct frame *f, const struct addr *src, const struct addr *dst,
		       size_t payload)
{
	assert(src->family == dst->family);
	put_ether(f, src->family == 4 ? 0x0800 : 0x86dd);
	if (src->family == 4)
		put_ip4(f, src, dst, IPPROTO_UDP, UDP_BYTES + payload);
	else
		put_ip6(f, src, dst, IPPROTO_UDP, UDP_BYTES + payload);
	put_udp(f, payload);
}

void frame_udp(struct frame *f, const char *src, const char *dst, size_t payload)
{
	struct addr from = address(src), to = address(dst);

	frame_udp_between(f, &from, &to, payload);
}

struct frame *frame_source(const char *src)
{
	static struct frame f;

	frame_udp(&f, src, strchr(src, ':') ? "2001:db8:ffff::1" : "203.0.113.1", 0);
	return &f;
}

void frame_udp_behind(struct frame *f, const uint8_t *kinds, size_t n, size_t ext_bytes)
{
	struct addr src = address("2001:db8::1"), dst = address("2001:db8::2");

	put_ether(f, 0x86dd);
	put_ip6(f, &src, &dst, n ? kinds[0] : IPPROTO_UDP, n * ext_bytes + UDP_BYTES);
	for (size_t i = 0; i < n; i++) {
		put8(f, i + 1 < n ? kinds[i + 1] : IPPROTO_UDP);
		put8(f, (unsigned)(ext_bytes / 8 - 1));
		for (size_t pad = 2; pad < ext_bytes; pad++)
			put8(f, 0);
	}
	put_udp(f, 0);
}

void frame_not_ip(struct frame *f, size_t len)
{
	put_ether(f, 0x88b5); // for local experiments (IEEE 802)
	while (f->len < len)
		put8(f, 0);
}

void frame_malformed(struct frame *f)
{
	frame_udp(f, "192.0.2.1", "192.0.2.2", 0);
	f->len = ETH_BYTES + 19;
}

bool frame_read_hex(const char *hex, struct frame *f)
{
	static const char digits[] = "0123456789abcdef";

	for (f->len = 0; hex[0] && hex[1]; hex += 2) {
		const char *high = strchr(digits, hex[0]), *low = strchr(digits, hex[1]);

		if (!high || !low || f->len == FRAME_MAX)
			return false;
		f->at[f->len++] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return !hex[0];
}
