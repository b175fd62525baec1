// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/addr_explain.h: the sentence and the hint for each kind of wrong word,
// and which words are taken for addresses.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/mem.h"

struct explained {
	const char *text, *sentence, *hint;
};

static const struct explained bad_prefixes[] = {
	{"10/8", "'10/8' is not an address", "write 10.0.0.0/8"},
	{"10.1/16", "'10.1/16' is not an address", "write 10.1.0.0/16"},
	{"10.1/8", "'10.1/8' is not an address", "write 10.0.0.0/8"},
	{"192.0.2/24", "'192.0.2/24' is not an address", "write 192.0.2.0/24"},
	{"0/8", "'0/8' is not an address", "write 0.0.0.0/8"},
	{"0/0", "'0/0' is not an address", "write any"},
	{"*", "'*' is not an address", "write any"},
	{"10.0.0.5/8", "'10.0.0.5/8' has host bits set",
	 "write 10.0.0.0/8 for the network or 10.0.0.5 for the host"},
	{"192.0.2.1/31", "'192.0.2.1/31' has host bits set",
	 "write 192.0.2.0/31 for the network or 192.0.2.1 for the host"},
	{"10.0.0.0/0", "'10.0.0.0/0' has host bits set",
	 "write 0.0.0.0/0 for the network or 10.0.0.0 for the host"},
	{"2001:db8::1/64", "'2001:db8::1/64' has host bits set",
	 "write 2001:db8::/64 for the network or 2001:db8::1 for the host"},
	{"::ffff:10.0.0.5/104", "'::ffff:10.0.0.5/104' has host bits set",
	 "write 10.0.0.0/8 for the network or 10.0.0.5 for the host"},
	{"::ffff:10.0.0.5/8", "'::ffff:10.0.0.5/8' has a prefix length for IPv4",
	 "write 10.0.0.0/8"},
	{"::ffff:10.0.0.5/96", "'::ffff:10.0.0.5/96' has host bits set",
	 "write 0.0.0.0/0 for the network or 10.0.0.5 for the host"},
	{"::ffff:10.0.0.5/32", "'::ffff:10.0.0.5/32' has a prefix length for IPv4",
	 "write 10.0.0.5"},
	{"::ffff:10.0.0.5/95", "'::ffff:10.0.0.5/95' has no sensible prefix length",
	 "write 10.0.0.5/N, N from 0 to 32"},
	{"::ffff:10.0.0.5/64", "'::ffff:10.0.0.5/64' has no sensible prefix length",
	 "write 10.0.0.5/N, N from 0 to 32"},
	{"10.0.0.0/255.0.0.0", "'10.0.0.0/255.0.0.0' has a netmask", "write 10.0.0.0/8"},
	{"10.1.2.3/255.255.255.0", "'10.1.2.3/255.255.255.0' has a netmask", "write 10.1.2.0/24"},
	{"10.1.2.0/0.0.0.255", "'10.1.2.0/0.0.0.255' has a netmask", "write 10.1.2.0/24"},
	{"1.2.3.4/255.255.255.255", "'1.2.3.4/255.255.255.255' has a netmask", "write 1.2.3.4"},
	{"10.0.0.0/255.0.255.0", "'10.0.0.0/255.0.255.0' has a netmask with holes",
	 "only a prefix length is allowed after '/'"},
	{"010.0.0.1", "'010.0.0.1' has a leading zero", "write 10.0.0.1: elsewhere it means octal"},
	{"010.0.0.0/08", "'010.0.0.0/08' has a leading zero",
	 "write 10.0.0.0/8: elsewhere it means octal"},
	{"2001:db8::/032", "'2001:db8::/032' has a leading zero",
	 "write 2001:db8::/32: elsewhere it means octal"},
	{"001.002.003.004", "'001.002.003.004' has a leading zero",
	 "write 1.2.3.4: elsewhere it means octal"},
	{"010.0.0.1/8", "'010.0.0.1/8' has a leading zero",
	 "the parts of an address are decimal: elsewhere a zero means octal"},
	{"0x7f.1", "'0x7f.1' is in hexadecimal", "write 127.0.0.1"},
	{"0x7F.0.0.1", "'0x7F.0.0.1' is in hexadecimal", "write 127.0.0.1"},
	{"0x7f000001", "'0x7f000001' is in hexadecimal", "write 127.0.0.1"},
	{"10.0x0102", "'10.0x0102' is in hexadecimal", "write 10.0.1.2"},
	{"0x0a.1.65535", "'0x0a.1.65535' is in hexadecimal", "write 10.1.255.255"},
	{"0x0a.1.65536", "'0x0a.1.65536' is not an address",
	 "an address looks like 192.0.2.1 or 2001:db8::1"},
	{"0x100.1.1.1", "'0x100.1.1.1' is not an address",
	 "an address looks like 192.0.2.1 or 2001:db8::1"},
	{"0x1.1.1.1.1", "'0x1.1.1.1.1' is not an address",
	 "an address looks like 192.0.2.1 or 2001:db8::1"},
	{"0x.1", "'0x.1' is not an address", "an address looks like 192.0.2.1 or 2001:db8::1"},
	{"0x0a000000/8", "'0x0a000000/8' is in hexadecimal", "write 10.0.0.0/8"},
	{"fe80::1%eth0", "'fe80::1%eth0' names an interface", "write fe80::1 and use on eth0"},
	{"fe80::%eth0/64", "'fe80::%eth0/64' names an interface",
	 "write fe80::/64 and use on eth0"},
	{"1.2.3.4/33", "'1.2.3.4/33' has a prefix length over 32",
	 "an IPv4 prefix length is 0 to 32"},
	{"1.2.3.4/99999999999999999999",
	 "'1.2.3.4/99999999999999999999' has a prefix length over 32",
	 "an IPv4 prefix length is 0 to 32"},
	{"::/129", "'::/129' has a prefix length over 128", "an IPv6 prefix length is 0 to 128"},
	{"1.2.3.4/", "'1.2.3.4/' has no prefix length", "write 1.2.3.4/N, N from 0 to 32"},
	{"1.2.3.4/x", "'1.2.3.4/x' has no prefix length", "write 1.2.3.4/N, N from 0 to 32"},
	{"1.2.3.4/+8", "'1.2.3.4/+8' has no prefix length", "write 1.2.3.4/N, N from 0 to 32"},
	{"1.2.3.4/-8", "'1.2.3.4/-8' has no prefix length", "write 1.2.3.4/N, N from 0 to 32"},
	{"1.2.3.4/8/8", "'1.2.3.4/8/8' has no prefix length", "write 1.2.3.4/N, N from 0 to 32"},
	{"::/8.", "'::/8.' has no prefix length", "write ::/N, N from 0 to 128"},
	{"name/24", "'name/24' is a host name with a prefix length",
	 "a name has no prefix length; a network is written with its address"},
	{"twitter.com/24", "'twitter.com/24' is a host name with a prefix length",
	 "a name has no prefix length; a network is written with its address"},
	{"10.1.*", "'10.1.*' is not an address", "write 10.1.0.0/16"},
	{"10.1.2.*", "'10.1.2.*' is not an address", "write 10.1.2.0/24"},
	{"10.*.*.*", "'10.*.*.*' is not an address", "write 10.0.0.0/8"},
	{"1.2.3.4.*", "'1.2.3.4.*' is not an address",
	 "an address looks like 192.0.2.1 or 2001:db8::1"},
	{"::1/255.0.0.0", "'::1/255.0.0.0' has no prefix length", "write ::1/N, N from 0 to 128"},
	{"10.1.2.3/0.0.0.0", "'10.1.2.3/0.0.0.0' has a netmask", "write 0.0.0.0/0"},
	{"12345:2:3:4:5:6:7:8", "'12345:2:3:4:5:6:7:8' is not an address",
	 "an IPv6 group is one to four hexadecimal digits, as in 2001:db8::1"},
	{":::", "':::' is not an address", "'::' is allowed only once"},
	{"1.2.3.4:80", "'1.2.3.4:80' is an address with a port", "write 1.2.3.4 port 80"},
	{"[2001:db8::1]:80", "'[2001:db8::1]:80' is an address with a port",
	 "write 2001:db8::1 port 80"},
	{"[::1]", "'[::1]' has brackets", "write ::1"},
	{"1.2.3.4-1.2.3.9", "'1.2.3.4-1.2.3.9' is a range",
	 "one address or prefix is expected here"},
	{"", "'' is not an address", "an address is missing here"},
	{"1.2.3", "'1.2.3' is not an address", "an IPv4 address has four parts, as 192.0.2.1 has"},
	{"1.2.3.4.5", "'1.2.3.4.5' is not an address",
	 "an IPv4 address has four parts, as 192.0.2.1 has"},
	{"1..3.4", "'1..3.4' is not an address",
	 "an IPv4 address has four parts, as 192.0.2.1 has"},
	{"300.1.2.3", "'300.1.2.3' is not an address", "each part of an IPv4 address is 0 to 255"},
	{"300.1.2.3/24", "'300.1.2.3/24' is not an address",
	 "each part of an IPv4 address is 0 to 255"},
	{"::1::", "'::1::' is not an address", "'::' is allowed only once"},
	{"1:2:3:4:5:6:7:8:9", "'1:2:3:4:5:6:7:8:9' is not an address",
	 "an IPv6 address has at most eight groups"},
	{"2001:db8", "'2001:db8' is not an address",
	 "an IPv6 address has eight groups, or '::' for those that are zero"},
	{"2001:db8::12345", "'2001:db8::12345' is not an address",
	 "an IPv6 group is one to four hexadecimal digits, as in 2001:db8::1"},
	{"twitter.com", "'twitter.com' is not an address",
	 "an address looks like 192.0.2.1 or 2001:db8::1"},
};

static void check_explained(const struct explained *want, const struct err *got)
{
	if (strcmp(want->sentence, got->text) != 0 || strcmp(want->hint, got->hint) != 0)
		fail_msg("'%s':\n\t%s\n\t%s", want->text, got->text, got->hint);
	assert_int_equal(got->kind, ERR_INPUT);
}

static void test_prefix_explains(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_prefixes); i++) {
		const struct explained *bad = &bad_prefixes[i];
		struct prefix p = {.len = 99};
		struct err err = {0};

		assert_int_equal(prefix_parse(bad->text, strlen(bad->text), &p, NULL, &err),
				 -EINVAL);
		assert_int_equal(p.len, 99);
		check_explained(bad, &err);
		assert_int_equal(prefix_parse_quiet(bad->text, strlen(bad->text), &p, NULL),
				 -EINVAL);
	}
}

static void test_explains_monsters(void **state)
{
	static const char alphabet[] = "0123456789abcdefx.:/%-*[] \tz";
	struct prefix ranges[254], p;
	uint64_t random = 3;
	struct err err = {0};
	char text[3000];
	size_t n;

	memset(text, '1', sizeof(text));
	assert_int_equal(prefix_parse(text, sizeof(text), &p, NULL, &err), -EINVAL);
	assert_true(strlen(err.text) < 120);
	assert_non_null(strstr(err.text, "11...' is not an address"));
	assert_int_equal(prefix_parse("1.2.3.4\0", 8, &p, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "'1.2.3.4?' is not an address");
	for (int i = 0; i < 200000; i++) {
		size_t len = unit_below(&random, i % 100 ? 24 : 400);

		for (size_t at = 0; at < len; at++)
			text[at] = alphabet[unit_below(&random, sizeof(alphabet) - 1)];
		err_clear(&err);
		if (prefix_parse(text, len, &p, NULL, &err) < 0)
			assert_true(err.kind == ERR_INPUT && err.hint[0]);
		err_clear(&err);
		if (range_parse(text, len, ranges, &n, &err) < 0)
			assert_true(err.kind == ERR_INPUT && err.hint[0]);
	}
}

static const struct explained bad_ranges[] = {
	{"192.0.2.10-20", "'192.0.2.10-20' is not a range of addresses",
	 "write 192.0.2.10-192.0.2.20"},
	{"192.0.2.10-256", "'256' is not an address",
	 "an IPv4 address has four parts, as 192.0.2.1 has"},
	{"192.0.2.10 - 192.0.2.20", "'192.0.2.10 - 192.0.2.20' has blanks",
	 "write 192.0.2.10-192.0.2.20"},
	{"192.0.2.20-192.0.2.10", "'192.0.2.20-192.0.2.10' ends before it begins",
	 "write 192.0.2.10-192.0.2.20"},
	{"::2-::1", "'::2-::1' ends before it begins", "write ::1-::2"},
	{"192.0.2.1-2001:db8::1", "'192.0.2.1-2001:db8::1' is a range over two families",
	 "write one for IPv4 and one for IPv6"},
	{"::1-1.2.3.4", "'::1-1.2.3.4' is a range over two families",
	 "write one for IPv4 and one for IPv6"},
	{"::-::ffff:1.2.3.4", "'::-::ffff:1.2.3.4' is a range over two families",
	 "write one for IPv4 and one for IPv6"},
	{"10.0.0.0/24-10.0.3.0/24", "'10.0.0.0/24-10.0.3.0/24' is a range of prefixes",
	 "write 10.0.0.0-10.0.3.255"},
	{"10.0.0.5-10.0.3.0/24", "'10.0.0.5-10.0.3.0/24' is a range of prefixes",
	 "write 10.0.0.5-10.0.3.255"},
	{"10.0.3.0/24-10.0.0.0/24", "'10.0.3.0/24-10.0.0.0/24' is a range of prefixes",
	 "write FIRST-LAST, two addresses"},
	{"10.0.0.0/24-name", "'name' is not an address",
	 "an address looks like 192.0.2.1 or 2001:db8::1"},
	{"10.0.0.256-10.0.1.0", "'10.0.0.256' is not an address",
	 "each part of an IPv4 address is 0 to 255"},
	{"010.0.0.1-10.0.0.9", "'010.0.0.1' has a leading zero",
	 "write 10.0.0.1: elsewhere it means octal"},
	{"1.2.3.4-1.2.3.5-1.2.3.6", "'1.2.3.5-1.2.3.6' is a range",
	 "one address or prefix is expected here"},
	{"1.2.3.4-", "'1.2.3.4-' is not a range", "write FIRST-LAST, as in 192.0.2.1-192.0.2.9"},
	{"-1.2.3.4", "'-1.2.3.4' is not a range", "write FIRST-LAST, as in 192.0.2.1-192.0.2.9"},
	{"1.2.3.4", "'1.2.3.4' is not a range", "write FIRST-LAST, as in 192.0.2.1-192.0.2.9"},
	{"-", "'-' is not a range", "write FIRST-LAST, as in 192.0.2.1-192.0.2.9"},
	{"", "'' is not a range", "write FIRST-LAST, as in 192.0.2.1-192.0.2.9"},
};

static void test_range_explains(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_ranges); i++) {
		const struct explained *bad = &bad_ranges[i];
		struct prefix p[254];
		struct err err = {0};
		size_t n = 99;

		assert_int_equal(range_parse(bad->text, strlen(bad->text), p, &n, &err), -EINVAL);
		assert_int_equal(n, 99);
		check_explained(bad, &err);
	}
}

static void test_looks_like(void **state)
{
	static const char *const addresses[] = {"1.2.3.4",
						"10/8",
						"10.0.0.0/255.0.0.0",
						"192.0.2.10-20",
						"80",
						"::",
						"fe80::1",
						"2001:db8::/32",
						"fe80::1%eth0",
						"fe80::%wlan0/64",
						"1.2.3.4-1.2.3.9",
						"::1-::9",
						"300.1.2.3",
						"1.2.3",
						"0x7f.1",
						"0x7f.0.0.0x1",
						"name/24",
						"1.2.3.*",
						"*",
						"[::1]",
						"1.2.3.4:80",
						"cafe:1",
						"-",
						"010.0.0.1",
						"beef::cafe"};
	static const char *const names[] = {
		"",          "twitter.com",      "a",         "web",       "1.example.com",
		"dead.beef", "3com.com",         "0xa.de",    "0x7f",      "foo-bar",
		"1-2.com",   "example.com:80",   "host:port", "4chan.org", "x.1.2.3.4",
		"self",      "127.0.0.1.nip.io", "%eth0",     "cafe%eth0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		if (!addr_looks_like(addresses[i], strlen(addresses[i])))
			fail_msg("'%s' was taken for a name", addresses[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (addr_looks_like(names[i], strlen(names[i])))
			fail_msg("'%s' was taken for an address", names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prefix_explains),
		cmocka_unit_test(test_explains_monsters),
		cmocka_unit_test(test_range_explains),
		cmocka_unit_test(test_looks_like),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
