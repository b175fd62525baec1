// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import/addrlist: addresses among other columns, sets of ipset and nft.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/import/addrlist.h"

typedef int (*reader)(const char *text, size_t len, const struct addrlist_options *options,
		      struct text *ret, struct addrlist_counts *counts, struct err *err);

struct case_ {
	const char *text, *want; // want: the list after its first line, or the message
	size_t entries, duplicates, skipped, expiring;
	unsigned column;
	const char *set;
};

static void test_all(reader read, const struct case_ *cases, size_t n, bool refused)
{
	for (size_t i = 0; i < n; i++) {
		const struct addrlist_options options = {.source = "x\ny",
							 .now_s = 1767225600,
							 .set = cases[i].set,
							 .column = cases[i].column};
		CLEANUP_TEXT struct text got = {0};
		struct addrlist_counts counts = {0};
		struct err err = {0};
		int code =
			read(cases[i].text, strlen(cases[i].text), &options, &got, &counts, &err);
		const char *list = got.len ? strchr(got.at, '\n') + 1 : "";

		if (!!code != refused ||
		    (code ? !strstr(err.text, cases[i].want) : !!strcmp(list, cases[i].want)))
			fail_msg("%s: %s%s", cases[i].text, text_get(&got), err.text);
		if (refused)
			assert_int_equal(got.len, 0);
		assert_int_equal(counts.entries, cases[i].entries);
		assert_int_equal(counts.duplicates, cases[i].duplicates);
		assert_int_equal(counts.skipped, cases[i].skipped);
		assert_int_equal(counts.expiring, cases[i].expiring);
	}
}

#define HINT "# 1 entry expires, for a dynamic set:\n"

static const struct case_ plain[] = {
	{"192.0.2.1 # one\r\n\n; two\n192.0.2.0/24 ; SBL1\n192.0.2.1\n",
	 "192.0.2.0/24\n192.0.2.1\n", 2, 1, 0, 0, 0, NULL},
	{"first_seen,dst_ip,port\n\"2024-01-02 10:20:30\",\"192.0.2.7\",443\n", "192.0.2.7\n", 1, 0,
	 1, 0, 0, NULL},
	{"192.0.2.0-192.0.2.2\n2001:DB8::1\t x\n", "192.0.2.0/31\n192.0.2.2\n2001:db8::1\n", 3, 0,
	 0, 0, 0, NULL},
	{"192.0.2.1,,192.0.2.2\n", "192.0.2.2\n", 1, 0, 0, 0, 3, NULL},
	{"\xef\xbb\xbf"
	 "192.0.2.1;x;192.0.2.2\n",
	 "192.0.2.1\n", 1, 0, 0, 0, 1, NULL},
	{"a  192.0.2.1\nb\n", "192.0.2.1\n", 1, 0, 1, 0, 2, NULL},
	{"v1 1.2.3 12:30 2024/01/02 80\n192.0.2.1", "192.0.2.1\n", 1, 0, 1, 0, 0, NULL},
};

static const struct case_ bad_plain[] = {
	{"", "there is no address", 0, 0, 0, 0, 0, NULL},
	{"# 192.0.2.1\nexample.com\n", "there is no address", 0, 0, 0, 0, 0, NULL},
	{"\n192.0.2.0 192.0.2.255 24\n", "line 2: the first and last address of a range", 0, 0, 0,
	 0, 0, NULL},
	{"2001:db8::,2001:db8::ff\n", "line 1: the first and last address of a range", 0, 0, 0, 0,
	 0, NULL},
	{"192.0.2.0\t255.255.255.0\n", "line 1: an address and a netmask", 0, 0, 0, 0, 0, NULL},
	{"192.0.2.0 0.0.0.255\n", "line 1: an address and a netmask", 0, 0, 0, 0, 0, NULL},
	{"192.0.2.9 192.0.2.1\n", "line 1: several addresses", 0, 0, 0, 0, 0, NULL},
	{"192.0.2.9 198.51.100.1 203.0.113.1\n", "line 1: several addresses", 0, 0, 0, 0, 0, NULL},
	{"192.0.2.1/8\n", "line 1: '192.0.2.1/8' has host bits set", 0, 0, 0, 0, 0, NULL},
	{"0.0.0.0 ads.example\n", "line 1: '0.0.0.0' is loopback or unspecified", 0, 0, 0, 0, 0,
	 NULL},
	{"127.0.0.1\n", "line 1: '127.0.0.1' is loopback", 0, 0, 0, 0, 0, NULL},
};

#define CREATE "create ban hash:net family inet hashsize 1024 maxelem 65536\n"

static const struct case_ ipset[] = {
	{CREATE "add ban 192.0.2.0/24\nadd ban 192.0.2.7 packets 0 bytes 0 comment \"a b\"\n",
	 "192.0.2.0/24\n192.0.2.7\n", 2, 0, 0, 0, 0, NULL},
	{CREATE "add ban 192.0.2.7 comment timeout\nadd ban 192.0.2.8 comment nomatch\n",
	 "192.0.2.7\n192.0.2.8\n", 2, 0, 0, 0, 0, NULL},
	{CREATE "add ban 192.0.2.7 comment timeout timeout 12\nadd ban 192.0.2.8\n",
	 HINT
	 "# weir block --set ban 192.0.2.7 --for $((1767225612-$(date +%s)))s # until 2026-01-01 00:00:12 UTC\n192.0.2.8\n",
	 1, 0, 0, 1, 0, NULL},
	{CREATE "create other hash:ip,port\nadd ban 192.0.2.7\nadd other 192.0.2.8,tcp:1\n",
	 "192.0.2.7\n", 1, 0, 0, 0, 0, "ban"},
	{"create t hash:ip timeout 300\nadd t 192.0.2.7 timeout 12\nadd t 192.0.2.8 timeout 0\n",
	 HINT
	 "# weir block --set t 192.0.2.7 --for $((1767225612-$(date +%s)))s # until 2026-01-01 00:00:12 UTC\n192.0.2.8\n",
	 1, 0, 0, 1, 0, NULL},
};

static const struct case_ bad_ipset[] = {
	{"", "there is no set", 0, 0, 0, 0, 0, NULL},
	{CREATE, "there is no address", 0, 0, 0, 0, 0, NULL},
	{CREATE, "there is no set other", 0, 0, 0, 0, 0, "other"},
	{CREATE "create b hash:ip\n", "line 2: 'b' is a second set", 0, 0, 0, 0, 0, NULL},
	{"create b hash:ip,port\n", "line 1: set 'b' is of type hash:ip,port", 0, 0, 0, 0, 0, NULL},
	{"create b hash:ip netmask 24\n", "hash:ip with a mask", 0, 0, 0, 0, 0, NULL},
	{"create b hash:ip comment netmask 24\n", "hash:ip with a mask", 0, 0, 0, 0, 0, NULL},
	{CREATE "add ban 192.0.2.1 timeout\n", "line 2: timeout ''", 0, 0, 0, 0, 0, NULL},
	{CREATE "add ban 192.0.2.0/24 nomatch\n", "line 2: a list cannot exclude '192.0.2.0/24'", 0,
	 0, 0, 0, 0, NULL},
	{CREATE "add b 192.0.2.1\n", "line 2: set 'b' has not been created", 0, 0, 0, 0, 0, NULL},
	{CREATE "add ban\n", "line 2: ", 0, 0, 0, 0, 0, NULL},
	{CREATE "add ban 192.0.2.1 timeout x\n", "line 2: timeout 'x'", 0, 0, 0, 0, 0, NULL},
	{CREATE "add ban 192.0.2.1 comment \"x\n", "line 2: ", 0, 0, 0, 0, 0, NULL},
	{"table inet t {\n", "line 1 is not of ipset save: 'table'", 0, 0, 0, 0, 0, NULL},
};

#define SET(type, more)                                                                        \
	"{\"nftables\": [{\"set\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"s\", " \
	"\"type\": \"" type "\"" more "}}]}"

static const struct case_ nft[] = {
	{SET("ipv4_addr", ", \"elem\": [{\"prefix\": {\"addr\": \"192.0.2.0\", \"len\": 24}}, "
			  "{\"range\": [\"198.51.100.1\", \"198.51.100.2\"]}]"),
	 "192.0.2.0/24\n198.51.100.1\n198.51.100.2\n", 3, 0, 0, 0, 0, "s"},
	{SET("ipv4_addr",
	     ", \"flags\": \"timeout\", \"elem\": [\"192.0.2.1\", {\"elem\": {\"val\": "
	     "\"192.0.2.9\", \"timeout\": 60, \"expires\": 9}}]"),
	 HINT
	 "# weir block --set s 192.0.2.9 --for $((1767225609-$(date +%s)))s # until 2026-01-01 00:00:09 UTC\n192.0.2.1\n",
	 1, 0, 0, 1, 0, "s"},
	{SET("ipv6_addr", ", \"timeout\": 60, \"elem\": [\"2001:db8::1\"]"),
	 HINT
	 "# weir block --set s 2001:db8::1 --for $((1767225660-$(date +%s)))s # until 2026-01-01 00:01:00 UTC\n",
	 0, 0, 0, 1, 0, "s"},
};

static const struct case_ bad_nft[] = {
	{"{\"nftables\": []}", "there is no set 's'", 0, 0, 0, 0, 0, "s"},
	{"{", "not JSON: line 1", 0, 0, 0, 0, 0, "s"},
	{SET("inet_service", ""), "set 's' has other elements than addresses", 0, 0, 0, 0, 0, "s"},
	{SET("ipv4_addr", ", \"elem\": [\"x.example\"]"), "elements that cannot be read", 0, 0, 0,
	 0, 0, "s"},
	{SET("ipv4_addr", ""), "there is no address", 0, 0, 0, 0, 0, "s"},
};

static void test_lists(void **state)
{
	test_all(import_plain, plain, ARRAY_SIZE(plain), false);
	test_all(import_plain, bad_plain, ARRAY_SIZE(bad_plain), true);
	test_all(import_ipset, ipset, ARRAY_SIZE(ipset), false);
	test_all(import_ipset, bad_ipset, ARRAY_SIZE(bad_ipset), true);
	test_all(import_set, nft, ARRAY_SIZE(nft), false);
	test_all(import_set, bad_nft, ARRAY_SIZE(bad_nft), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
