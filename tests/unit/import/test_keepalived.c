// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import/keepalived: virtual servers as services, and what is left out.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/import/keepalived.h"

#define REAL "real_server 10.0.0.11 80 {\nweight 2\nTCP_CHECK {\nconnect_timeout 3\n}\n}\n"

static const struct {
	const char *text, *want;
	size_t translated, omitted; // both 0: refused, and `want` is in the message
} cases[] = {
	{"! a comment\nvrrp_instance x {\n state MASTER\n}\n"
	 "virtual_server 192.0.2.10 80 {\n delay_loop 6\n lb_algo rr\n lb_kind DR\n protocol TCP\n"
	 " sorry_server 10.0.0.19 80\n real_server 10.0.0.11 80 {\n  weight 2\n  HTTP_GET {\n   url {\n"
	 "    path /up\n    status_code 200\n   }\n   connect_timeout 3\n  }\n }\n}\n",
	 "service vs1 {\n\tvip 192.0.2.10\n\tport 80\n\tproto tcp\n\tmode dr\n\tbackend 10.0.0.19 "
	 "backup\n\tbackend 10.0.0.11 weight 2\n\tcheck http \"/up\" expect 200 every 6s timeout "
	 "3s\n}\n",
	 1, 0},
	{"virtual_server_group g {\n192.0.2.10 80\n2001:db8::10 80\n}\nvirtual_server group g {\n"
	 "lvs_method TUN\npersistence_timeout 60\n" REAL "}\n",
	 "\tvip 192.0.2.10, 2001:db8::10\n\tport 80\n\tproto tcp\n\tmode ipip\n\thash source\n"
	 "\tbackend 10.0.0.11 weight 2\n\tcheck tcp every 60s timeout 3s\n}\n",
	 1, 0},
	{"virtual_server 192.0.2.10 443 {\nlb_kind DR\nreal_server 10.0.0.11 443 {\nSSL_GET {\nurl {\n"
	 "path \"/a b\"\n}\n}\n}\nreal_server 10.0.0.12 443 {\n}\n}\n",
	 "\t# the real servers have different checks\n", 1, 0},
	{"virtual_server 192.0.2.10 80 {\nlb_kind DR\nreal_server 10.0.0.11 80 {\nMISC_CHECK {\n}\n}\n}\n",
	 "\t# line 4: a check that Weir lacks\n", 1, 0},
	{"\nvirtual_server 192.0.2.10 80 {\nlb_kind NAT\n" REAL "}\n",
	 "# line 2, left to keepalived: Weir has only direct return", 0, 1},
	{"virtual_server fwmark 7 {\nlb_kind DR\n" REAL "}\n", "firewall marks", 0, 1},
	{"virtual_server 192.0.2.10 81 {\nlb_kind DR\n" REAL "}\n", "has another port", 0, 1},
	{"virtual_server 192.0.2.10 80 {\nlb_kind DR\n}\n", "it has no real server", 0, 1},
	{"virtual_server group none {\nlb_kind DR\n" REAL "}\n", "the group has no address", 0, 1},
	{"virtual_server {\n}\nvirtual_server 192.0.2.1 {\n}\n", "left to keepalived", 0, 2},
	{"", "there is no virtual_server", 0, 0},
	{"vrrp_instance x {\n}\n", "there is no virtual_server", 0, 0},
	{"virtual_server 192.0.2.10 80 {\n", "line 2: '}' is missing", 0, 0},
	{"virtual_server \"", "left to keepalived", 0, 1},
	{"\n}\n", "line 2: '}' without '{'", 0, 0},
	{"a{b{c{d{e{f{g{h{i{", "line 1: more than 8 blocks", 0, 0},
};

static void test_services(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_TEXT struct text got = {0};
		struct import_counts n = {0};
		struct err err = {0};
		int code = import_keepalived(cases[i].text, strlen(cases[i].text), "x", &got, &n,
					     &err);

		if (!strstr(code ? err.text : text_get(&got), cases[i].want))
			fail_msg("%s: %s%s", cases[i].text, text_get(&got), err.text);
		assert_int_equal(!code, cases[i].translated + cases[i].omitted > 0);
		assert_int_equal(n.translated, cases[i].translated);
		assert_int_equal(n.omitted, cases[i].omitted);
		if (code)
			assert_int_equal(got.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
