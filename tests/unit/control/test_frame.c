// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/frame.h: whole frames against bytes of scapy 2.5, then every kind of
// packet in many lengths, compared with lengths and checksums that are computed differently here.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/control/frame.h"

static struct resolved_packet packet4(uint8_t proto)
{
	return (struct resolved_packet){
		.ethertype = 0x0800,
		.ip = true,
		.proto = proto,
		.ttl = 64,
		.from = {4, {192, 0, 2, 1}},
		.to = {4, {198, 51, 100, 9}},
	};
}

static struct resolved_packet packet6(uint8_t proto)
{
	return (struct resolved_packet){
		.ethertype = 0x86dd,
		.ip = true,
		.proto = proto,
		.ttl = 64,
		.from = {6, {0x20, 1, 0xd, 0xb8, [15] = 1}},
		.to = {6, {0x20, 1, 0xd, 0xb8, 0, 9, [15] = 2}},
	};
}

static struct resolved_packet ports(struct resolved_packet p, uint16_t sport, uint16_t dport)
{
	p.sport = sport;
	p.dport = dport;
	return p;
}

static size_t build(const struct resolved_packet *p, uint8_t frame[FRAME_MAX])
{
	struct err err = {0};
	size_t length = 0;
	int code = frame_build(p, frame, &length, &err);

	if (code)
		print_error("%s\n", err.text);
	assert_int_equal(code, 0);
	return length;
}

// ---- against scapy ------------------------------------------------------------------------------

static void assert_frame(const struct resolved_packet *p, const char *hex)
{
	uint8_t frame[FRAME_MAX];
	size_t length = build(p, frame);
	char got[2 * FRAME_MAX + 1];

	for (size_t i = 0; i < length; i++)
		snprintf(got + 2 * i, 3, "%02x", frame[i]);
	assert_string_equal(got, hex);
}

static void test_tcp(void **state)
{
	struct resolved_packet p = ports(packet4(6), 40000, 443);

	p.flags = 2;
	assert_frame(&p, "0200000000020200000000010800450000280000400040064e92c0000201c63364099c40"
			 "01bb00000001000000005002ffff25a80000");
	p = ports(packet6(6), 40000, 443);
	p.flags = 16;
	p.vlan = 7;
	p.length = 63;
	assert_frame(&p, "0200000000020200000000018100000786dd600000000017064020010db8000000000000"
			 "00000000000120010db80009000000000000000000029c4001bb00000001000000015010"
			 "ffffb6560000000000");
}

static void test_udp(void **state)
{
	struct resolved_packet p = ports(packet4(17), 53, 5353);

	p.length = 33;
	assert_frame(&p, "0200000000020200000000010800450000210000400040114e8ec0000201c63364090035"
			 "14e9000dfe770000000000");
	p = ports(packet6(17), 53, 5353);
	assert_frame(&p, "02000000000202000000000186dd60000000000811402001"
			 "0db800000000000000000000000120010db8000900000000"
			 "000000000002003514e900088f42");
}

static void test_icmp(void **state)
{
	struct resolved_packet p = packet4(1);

	p.type = 8;
	p.vlan = 7;
	assert_frame(&p, "0200000000020200000000018100000708004500001c0000400040014ea3c0000201c633"
			 "64090800f7ff00000000");
	p = packet6(58); // a neighbour solicitation for ::
	p.type = 135;
	p.ttl = 255;
	p.length = 64;
	assert_frame(&p, "02000000000202000000000186dd6000000000183aff20010db800000000000000000000"
			 "000120010db800090000000000000000000287001d2f0000000000000000000000000000"
			 "000000000000");
	p = packet6(58);
	p.type = 1;
	p.code = 4;
	assert_frame(&p, "02000000000202000000000186dd6000000000083a4020010db800000000000000000000"
			 "000120010db80009000000000000000000020104a33b00000000");
}

static void test_sctp(void **state)
{
	struct resolved_packet p = ports(packet4(132), 40000, 38412);

	assert_frame(&p, "0200000000020200000000010800450000200000400040844e1cc0000201c63364099c40"
			 "960c0000000092d037e2");
	p = ports(packet6(132), 40000, 38412);
	p.length = 56;
	assert_frame(&p, "02000000000202000000000186dd600000000010844020010db800000000000000000000"
			 "000120010db80009000000000000000000029c40960c000000007f990c4800000000");
}

static void test_other_protocols(void **state)
{
	struct resolved_packet p = packet4(47);

	p.length = 24;
	assert_frame(&p, "02000000000202000000000108004500001800004000402f4e79c0000201c63364090000"
			 "0000");
}

static void test_fragments(void **state)
{
	struct resolved_packet p = packet4(17);

	p.fragment = true;
	p.length = 28;
	assert_frame(&p, "02000000000202000000000108004500001c0001000840118e8ac0000201c63364090000"
			 "000000000000");
	p = packet6(6);
	p.fragment = true;
	assert_frame(&p, "02000000000202000000000186dd6000000000092c4020010db800000000000000000000"
			 "000120010db8000900000000000000000002060000400000000100");
}

static void test_not_ip(void **state)
{
	struct resolved_packet p = {.ethertype = 0x88cc};

	assert_frame(&p, "02000000000202000000000188cc");
	p.vlan = 4095;
	p.length = 20;
	assert_frame(&p, "02000000000202000000000181000fff88cc0000");
}

// ---- against arithmetic -------------------------------------------------------------------------

static unsigned at16(const uint8_t *p)
{
	return (unsigned)(p[0] * 256 + p[1]);
}

// Adds words in the byte order of the machine, which does not matter for a sum that must be all
// ones.
static uint64_t add_words(uint64_t sum, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		uint16_t word = 0;

		memcpy(&word, (const uint8_t *)bytes + i, i + 1 < n ? 2 : 1);
		sum += word;
	}
	return sum;
}

static bool sums_up(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static uint32_t reverse(uint32_t value, int bits)
{
	uint32_t result = 0;

	for (int i = 0; i < bits; i++)
		result |= (value >> i & 1) << (bits - 1 - i);
	return result;
}

// Division of polynomials, the highest power first, over a copy whose checksum field is zero.
static uint32_t division(const uint8_t *bytes, size_t n, size_t field)
{
	uint32_t rest = ~0u;

	for (size_t i = 0; i < n; i++) {
		uint8_t byte = i >= field && i < field + 4 ? 0 : bytes[i];

		rest ^= reverse(byte, 8) << 24;
		for (int bit = 0; bit < 8; bit++)
			rest = rest & 1u << 31 ? rest << 1 ^ 0x1edc6f41 : rest << 1;
	}
	return ~reverse(rest, 32);
}

static void test_division(void **state)
{
	assert_int_equal(division((const uint8_t *)"123456789", 9, 100), 0xe3069283);
}

static void assert_ip_checksum(const struct resolved_packet *p, const uint8_t *transport, size_t n)
{
	size_t bytes = p->from.family == 4 ? 4 : 16;
	uint8_t pseudo[4] = {(uint8_t)(n >> 8), (uint8_t)n, 0, p->proto};
	uint64_t sum = add_words(0, transport, n);

	if (p->proto != 1) {
		sum = add_words(sum, p->from.bytes, bytes);
		sum = add_words(sum, p->to.bytes, bytes);
		sum = add_words(sum, pseudo, sizeof(pseudo));
	}
	assert_true(sums_up(sum));
}

static void assert_transport(const struct resolved_packet *p, const uint8_t *transport, size_t n)
{
	uint32_t crc;

	if (p->proto == 132) {
		crc = division(transport, n, 8);
		assert_memory_equal(transport + 8, (&(uint32_t){crc}), 4); // little endian
		return;
	}
	assert_ip_checksum(p, transport, n);
	if (p->proto != 17)
		return;
	assert_int_equal(at16(transport + 4), n);
	assert_int_not_equal(at16(transport + 6), 0);
}

static const uint8_t *assert_ip4(const struct resolved_packet *p, const uint8_t *ip, size_t length)
{
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(at16(ip + 2), length);
	assert_int_equal(at16(ip + 6), p->fragment ? 8 : 0x4000);
	assert_int_equal(ip[8], p->ttl);
	assert_int_equal(ip[9], p->proto);
	assert_memory_equal(ip + 12, p->from.bytes, 4);
	assert_memory_equal(ip + 16, p->to.bytes, 4);
	assert_true(sums_up(add_words(0, ip, 20)));
	return ip + 20;
}

static const uint8_t *assert_ip6(const struct resolved_packet *p, const uint8_t *ip, size_t length)
{
	assert_int_equal(ip[0], 0x60);
	assert_int_equal(at16(ip + 4), length - 40);
	assert_int_equal(ip[6], p->fragment ? 44 : p->proto);
	assert_int_equal(ip[7], p->ttl);
	assert_memory_equal(ip + 8, p->from.bytes, 16);
	assert_memory_equal(ip + 24, p->to.bytes, 16);
	if (!p->fragment)
		return ip + 40;
	assert_int_equal(ip[40], p->proto);
	assert_int_equal(at16(ip + 42), 64);
	return ip + 48;
}

// The packet must be as its headers describe it, with no byte after its end.
static void assert_right(const struct resolved_packet *p)
{
	uint8_t frame[FRAME_MAX];
	size_t length = build(p, frame), head = p->vlan ? 18 : 14;
	const uint8_t *ip = frame + head, *end = frame + length, *transport;

	assert_int_equal(at16(ip - 2), p->ethertype);
	if (p->vlan)
		assert_int_equal(at16(frame + 14), p->vlan);
	if (p->length)
		assert_int_equal(length, p->length + head);
	transport = p->from.family == 4 ? assert_ip4(p, ip, length - head)
					: assert_ip6(p, ip, length - head);
	assert_true(transport <= end);
	if (!p->fragment && p->proto != 47)
		assert_transport(p, transport, (size_t)(end - transport));
	for (const uint8_t *rest = end; rest < frame + FRAME_MAX; rest++)
		assert_int_equal(*rest, 0);
}

static void random_addr(uint64_t *seed, struct addr *a)
{
	for (int i = 0; i < (a->family == 4 ? 4 : 16); i++)
		a->bytes[i] = (uint8_t)unit_random(seed);
}

static struct resolved_packet random_packet(uint64_t *seed)
{
	static const uint8_t protos[] = {1, 6, 17, 47, 58, 132};
	uint8_t proto = protos[unit_below(seed, 6)];
	bool v4 = proto == 1 || (proto != 58 && unit_below(seed, 2));
	struct resolved_packet p = v4 ? packet4(proto) : packet6(proto);

	random_addr(seed, &p.from);
	random_addr(seed, &p.to);
	p.sport = (uint16_t)unit_random(seed);
	p.dport = (uint16_t)unit_random(seed);
	p.flags = p.type = p.code = (uint8_t)unit_random(seed);
	p.ttl = (uint8_t)unit_random(seed);
	p.vlan = unit_below(seed, 2) ? (uint16_t)unit_below(seed, 4096) : 0;
	p.fragment = !unit_below(seed, 4);
	p.length = unit_below(seed, 3) ? 68 + unit_below(seed, 1500) : 0;
	return p;
}

static void test_random_packets(void **state)
{
	uint64_t seed = 20;

	for (int i = 0; i < 2000; i++) {
		struct resolved_packet p = random_packet(&seed);

		assert_right(&p);
	}
}

// The sum of a UDP datagram can be 0, which would mean "no checksum".
static void test_udp_checksum_zero(void **state)
{
	struct resolved_packet p = ports(packet4(17), 0, 0);
	uint8_t frame[FRAME_MAX];

	build(&p, frame);
	p.dport = (uint16_t)at16(frame + 40); // takes the whole sum upon itself
	build(&p, frame);
	assert_int_equal(at16(frame + 40), 0xffff);
	assert_right(&p);
}

// ---- lengths ------------------------------------------------------------------------------------

static const struct {
	uint8_t family, proto;
	bool fragment;
	uint32_t least;
} leasts[] = {
	{4, 6, false, 40},  {4, 17, false, 28}, {4, 1, false, 28},  {4, 132, false, 32},
	{4, 47, false, 20}, {4, 6, true, 21},   {6, 6, false, 60},  {6, 17, false, 48},
	{6, 58, false, 48}, {6, 1, false, 40},  {4, 58, false, 20}, {6, 132, false, 52},
	{6, 50, false, 40}, {6, 17, true, 49},  {6, 60, true, 49},  {4, 0, false, 20},
};

static void test_least_lengths(void **state)
{
	uint8_t frame[FRAME_MAX];
	struct err err = {0};
	size_t length;

	for (size_t i = 0; i < sizeof(leasts) / sizeof(leasts[0]); i++) {
		struct resolved_packet p =
			leasts[i].family == 4 ? packet4(leasts[i].proto) : packet6(leasts[i].proto);

		p.fragment = leasts[i].fragment;
		assert_int_equal(build(&p, frame), 14 + leasts[i].least);
		p.length = leasts[i].least;
		assert_int_equal(build(&p, frame), 14 + leasts[i].least);
		p.length--;
		length = 4711;
		assert_int_equal(frame_build(&p, frame, &length, &err), -EINVAL);
		assert_int_equal(length, 4711);
		assert_non_null(strstr(err.text, "is too small"));
	}
}

static void test_most_lengths(void **state)
{
	struct resolved_packet p = packet4(47), frames = {.ethertype = 0x806};
	uint8_t frame[FRAME_MAX];
	struct err err = {0};
	size_t length;

	p.length = FRAME_MAX - 14;
	assert_int_equal(build(&p, frame), FRAME_MAX);
	p.vlan = 1;
	assert_int_equal(frame_build(&p, frame, &length, &err), -EINVAL);
	assert_string_equal(err.text, "length 9202 is too large: the maximum is 9198");
	p.length -= 4;
	assert_int_equal(build(&p, frame), FRAME_MAX);
	frames.length = 13;
	assert_int_equal(frame_build(&frames, frame, &length, &err), -EINVAL);
	frames.length = FRAME_MAX;
	assert_int_equal(build(&frames, frame), FRAME_MAX);
	frames.length++;
	assert_int_equal(frame_build(&frames, frame, &length, &err), -EINVAL);
}

// In IPv6 these numbers announce a header, which a packet of this kind would not have.
static void test_extension_headers(void **state)
{
	static const uint8_t protos[] = {0, 43, 44, 60};
	uint8_t frame[FRAME_MAX];
	struct err err = {0};
	size_t length;

	for (size_t i = 0; i < sizeof(protos); i++) {
		struct resolved_packet p = packet6(protos[i]);

		assert_int_equal(frame_build(&p, frame, &length, &err), -EINVAL);
		assert_non_null(strstr(err.text, "extension header"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_icmp),
		cmocka_unit_test(test_sctp),
		cmocka_unit_test(test_other_protocols),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_not_ip),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_random_packets),
		cmocka_unit_test(test_udp_checksum_zero),
		cmocka_unit_test(test_least_lengths),
		cmocka_unit_test(test_most_lengths),
		cmocka_unit_test(test_extension_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
