// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/packet.h: tags, extension headers, and frames that are cut off.
#include "tests/unit/base/unit.h"

#include <netinet/in.h>
#include <string.h>

#include "ctl/control/packet.h"

#define MACS  "\2\0\0\0\0\1\2\0\0\0\0\2"
#define IP4   "\x45\0\0\x28\0\0\0\0\x40\6\0\0\xc0\0\2\1\xc6\x33\x64\1"
#define PORTS "\0\x50\1\xbb"
#define IP6                                                                        \
	"\x60\0\0\0\0\x10"                                                         \
	"\0\x40\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\x20\1\xd\xb8\0\0\0\0\0\0\0\0" \
	"\0\0\0\2"

static struct packet_fields read_all(const char *frame, size_t length)
{
	struct packet_fields p;

	packet_read((const uint8_t *)frame, length, &p);
	return p;
}

#define READ(literal) read_all(literal, sizeof(literal) - 1)

static void assert_addr(const struct addr *a, const char *expected)
{
	addr_text text;

	assert_string_equal(addr_format(a, text), expected);
}

static void test_plain(void **state)
{
	struct packet_fields p = READ(MACS "\x08\0" IP4 PORTS);

	assert_true(p.ethernet && p.ip && p.ports && !p.later && !p.tcp);
	assert_addr(&p.from, "192.0.2.1");
	assert_addr(&p.to, "198.51.100.1");
	assert_int_equal(p.proto, IPPROTO_TCP);
	assert_int_equal(p.from_port, 80);
	assert_int_equal(p.to_port, 443);
}

static void test_tags(void **state)
{
	struct packet_fields p = READ(MACS "\x88\xa8\0\7\x81\0\0\x8\x08\0" IP4);

	assert_true(p.ip);
	assert_int_equal(p.n_vlans, 2);
	assert_int_equal(p.vlans[1], 8);
	p = READ(MACS "\x91\0\0\7\x08\0" IP4); // no tag for Linux, and none for the datapath
	assert_false(p.ip);
	assert_int_equal(p.ethertype, 0x9100);
}

// A later fragment after a hop-by-hop header: the protocol is in the fragment header.
static void test_extensions(void **state)
{
	struct packet_fields p =
		READ(MACS "\x86\xdd" IP6 "\x2c\0\1\4\0\0\0\0\x11\0\0\x8\0\0\0\1" PORTS);

	assert_true(p.ip && p.later && !p.ports);
	assert_int_equal(p.proto, IPPROTO_UDP);
	assert_addr(&p.from, "2001:db8::1");
	assert_addr(&p.to, "2001:db8::2");
}

static void test_cut_off(void **state)
{
	static const char frame[] = MACS "\x08\0" IP4 PORTS;
	struct packet_fields p;

	for (size_t length = 0; length < sizeof(frame); length++) {
		p = read_all(frame, length);
		assert_int_equal(p.ethernet, length >= 14);
		assert_int_equal(p.ip, length >= 34);
		assert_int_equal(p.ports, length >= 38);
		assert_int_equal(p.from.family, p.ip ? 4 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
