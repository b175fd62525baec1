// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import/keepalived: virtual servers as services, and what is left out.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/import/keepalived.h"

#define REAL "real_server 10.0.0.11 80 {\nweight 2\nTCP_CHECK {\nconnect_timeout 3\n}\n}\n"

#define VS(lines) "virtual_server 192.0.2.10 80 {\nlb_kind DR\n" lines "}\n"
#define RS(lines) "real_server 10.0.0.11 80 {\n" lines "}\n"
#define HTTP(url) RS("HTTP_GET {\n" url "}\n")
#define LACKS     "\t# line 4: a check that Weir lacks\n"
#define LACKS5    "\t# line 5: a check that Weir lacks\n"

static const struct {
	const char *text, *want;
	size_t translated, omitted; // both 0: refused, and `want` is in the message
	size_t lacking;
} cases[] = {
	{"! a comment\nvrrp_instance x {\n state MASTER\n}\n"
	 "virtual_server 192.0.2.10 80 {\n delay_loop 6\n lb_algo rr\n lb_kind DR\n protocol TCP\n"
	 " sorry_server 10.0.0.19 80\n real_server 10.0.0.11 80 {\n  weight 2\n  HTTP_GET {\n   url {\n"
	 "    path /up\n    status_code 200\n   }\n   connect_timeout 3\n  }\n }\n}\n",
	 "service vs1 {\n\tvip 192.0.2.10\n\tport 80\n\tproto tcp\n\tmode dr\n\tbackend 10.0.0.19 "
	 "backup\n\tbackend 10.0.0.11 weight 2\n\tcheck http \"/up\" expect 200 every 6s timeout "
	 "3s\n\t# line 10: in Weir, the sorry server is checked too\n}\n",
	 1, 0, 1},
	{"virtual_server_group g {\n192.0.2.10 80\n2001:db8::10 80\n}\nvirtual_server group g {\n"
	 "lvs_method TUN\npersistence_timeout 60\n" REAL "}\n",
	 "\tvip 192.0.2.10, 2001:db8::10\n\tport 80\n\tproto tcp\n\tmode ipip\n\thash source\n"
	 "\tbackend 10.0.0.11 weight 2\n\tcheck tcp every 60s timeout 3s\n}\n",
	 1, 0, 0},
	{"virtual_server 192.0.2.10 443 {\nlb_kind DR\nreal_server 10.0.0.11 443 {\nSSL_GET {\nurl {\n"
	 "path \"/a b\"\n}\n}\n}\nreal_server 10.0.0.12 443 {\n}\n}\n",
	 "\t# the real servers have different checks\n", 1, 0, 1},
	{"virtual_server 192.0.2.10 80 {\nlb_kind DR\nreal_server 10.0.0.11 80 {\nMISC_CHECK {\n}\n}\n}\n",
	 "\t# line 4: a check that Weir lacks\n", 1, 0, 1},
	{"\nvirtual_server 192.0.2.10 80 {\nlb_kind NAT\n" REAL "}\n",
	 "# line 2, left to keepalived: lb_kind NAT is not translated", 0, 1, 0},
	{"virtual_server fwmark 7 {\nlb_kind DR\n" REAL "}\n", "firewall marks", 0, 1, 0},
	{"virtual_server 192.0.2.10 81 {\nlb_kind DR\n" REAL "}\n", "has another port", 0, 1, 0},
	{"virtual_server 192.0.2.10 80 {\nlb_kind DR\n}\n", "it has no real server", 0, 1, 0},
	{"virtual_server group none {\nlb_kind DR\n" REAL "}\n", "the group has no address", 0, 1,
	 0},
	{"virtual_server {\n}\nvirtual_server 192.0.2.1 {\n}\n", "left to keepalived", 0, 2, 0},
	// methods
	{VS(REAL "lvs_method TUN type gue port 4\n"), "Weir's tunnels are IP in IP", 0, 1, 0},
	{VS(REAL "lvs_method TUN type ipip\n"), "\tmode ipip\n", 1, 0, 0},
	{VS(REAL "lvs_method TUN\nlb_kind NAT\n"), "lb_kind NAT is not translated", 0, 1, 0},
	{VS(REAL "lvs_method NAT\nlb_kind TUN\n"), "\tmode ipip\n", 1, 0, 0},
	{VS(REAL "sorry_server_lvs_method NAT\n"), "the sorry server has its own method", 0, 1, 0},
	{VS(RS("lvs_method NAT\n")), "a real server has its own method", 0, 1, 0},
	{VS("real_server 10.0.0.11 80 { weight 1 TCP_CHECK { connect_timeout 2 } }\n"),
	 "a line has more than a weight", 0, 1, 0},
	{VS(RS("weight 1 TCP_CHECK\n")), "a line has more than a weight", 0, 1, 0},
	// lines that stand for others
	{"virtual_server 192.0.2.10 80\n\n{\nlb_kind DR\n" REAL "}\n", "\tvip 192.0.2.10\n", 1, 0,
	 0},
	{"{\n}\n", "line 1: '{' without a word before it", 0, 0, 0},
	{"a {\n}\n{\n}\n", "line 3: '{' without a word before it", 0, 0, 0},
	{VS(REAL "include more.conf\n"), "it has an include", 0, 1, 0},
	{VS(RS("@main weight 5\n")), "a line for some instances (@)", 0, 1, 0},
	{VS(REAL "$BLOCK\n"), "it has a definition ($)", 0, 1, 0},
	{VS(REAL "delay_loop ${TIME}\n"), "it has a definition ($)", 0, 1, 0},
	{"virtual_server_group g {\n@main 192.0.2.10 80\n}\nvirtual_server group g {\nlb_kind DR\n" REAL
	 "}\n",
	 "a line for some instances (@)", 0, 1, 0},
	{"include vs/*.conf\n" VS(REAL), "# line 1, left to keepalived: it may have virtual", 1, 1,
	 0},
	{"@main virtual_server 192.0.2.1 80 {\n}\n", "# line 1, left to keepalived", 0, 1, 0},
	{"$SERVERS\n", "# line 1, left to keepalived", 0, 1, 0},
	{"$A=1\n" VS(REAL), "1 service, 0 left", 1, 0, 0},
	{"$A= \\\nvirtual_server 192.0.2.1 80 { \\\n}\n", "line 1: a definition of several lines",
	 0, 0, 0},
	{VS("weight 7\n" RS("")), "backend 10.0.0.11 weight 7\n", 1, 0, 0},
	{VS("weight 7\n" RS("weight 2\nweight 3\n")), "backend 10.0.0.11 weight 3\n", 1, 0, 0},
	{VS(REAL "protocol TCP\nprotocol udp\n"), "\tproto udp\n", 1, 0, 0},
	{VS(REAL "protocol dccp\n"), "the protocol is unknown", 0, 1, 0},
	{VS(REAL "notify_up a b c d e f g h i j k l m n o p q\n"), "a line has too many words", 0,
	 1, 0},
	// checks
	{VS(HTTP("url {\npath /\nstatus_code 200 301-303\n}\n")),
	 "check http \"/\" expect 200, 301-303 every 60s timeout 5s\n", 1, 0, 0},
	{VS(HTTP("url {\npath /\nstatus_code 2xx\n}\n")), LACKS, 1, 0, 1},
	{VS(HTTP("url {\npath /\nstatus_code\n}\n")), LACKS, 1, 0, 1},
	{VS(HTTP("url {\npath /\ndigest 0123\n}\n")), LACKS, 1, 0, 1},
	{VS(HTTP("url {\npath /\nregex up\n}\n")), LACKS, 1, 0, 1},
	{VS(HTTP("url {\npath /a\n}\nurl {\npath /b\n}\n")), LACKS, 1, 0, 1},
	{VS(HTTP("url {\npath \"/\\\"\n}\n")), LACKS, 1, 0, 1},
	{VS(HTTP("url {\n}\n")), LACKS, 1, 0, 1},
	{VS(RS("TCP_CHECK {\nconnect_ip 10.0.0.1\n}\n")), LACKS, 1, 0, 1},
	{VS(RS("TCP_CHECK {\n}\nMISC_CHECK {\n}\n")), "# line 6: a check that Weir lacks\n", 1, 0,
	 1},
	{VS("virtualhost v\n" RS("virtualhost r\nHTTP_GET {\nvirtualhost c\nurl {\npath /\n"
				 "virtualhost u\n}\n}\n")),
	 "host \"u\"", 1, 0, 0},
	{VS("virtualhost v\n" RS(
		 "virtualhost r\nHTTP_GET {\nvirtualhost c\nurl {\npath /\n}\n}\n")),
	 "host \"c\"", 1, 0, 0},
	{VS("virtualhost v\n" RS("virtualhost r\nHTTP_GET {\nurl {\npath /\n}\n}\n")), "host \"r\"",
	 1, 0, 0},
	{VS("virtualhost v\n" RS("HTTP_GET {\nurl {\npath /\n}\n}\n")), "host \"v\"", 1, 0, 0},
	{VS("delay_loop 2.5\n" RS("TCP_CHECK {\nconnect_timeout 0.25\n}\n")),
	 "check tcp every 2500ms timeout 250ms\n", 1, 0, 0},
	{VS("delay_loop 9\n" RS("delay_loop 8\nTCP_CHECK {\ndelay_loop 7\n}\n")), "every 7s", 1, 0,
	 0},
	{VS("delay_loop x\n" RS("TCP_CHECK {\n}\n")), LACKS5, 1, 0, 1},
	{VS("delay_loop 4000\n" RS("TCP_CHECK {\n}\n")), LACKS5, 1, 0, 1},
	{VS(RS("TCP_CHECK {\nconnect_timeout 1.x\n}\n")), LACKS, 1, 0, 1},
	{VS(RS("TCP_CHECK {\nconnect_port 0\n}\n")), LACKS, 1, 0, 1},
	// persistence, schedulers
	{VS(REAL "persistence_timeout\n"), "\thash source\n", 1, 0, 0},
	{VS(REAL "persistence_granularity 255.255.255.0\n"), "per address, not per network", 0, 1,
	 0},
	{VS(REAL "lb_algo sh\n"), "\thash source\n", 1, 0, 0},
	{VS(REAL "lb_algo mh\n"), "\thash source\n", 1, 0, 0},
	{VS(REAL "lb_algo sh\nsh-port\n"), "\tmode dr\n\tbackend", 1, 0, 0},
	{VS(REAL "lb_algo mh\nmh-port\n"), "\tmode dr\n\tbackend", 1, 0, 0},
	// sorry servers, quorum
	{VS("sorry_server 10.0.0.19 80\n"), "it has no real server", 0, 1, 0},
	{VS("sorry_server 10.0.0.19 80\n" RS("")), "backend 10.0.0.19 backup\n", 1, 0, 0},
	{VS(REAL "quorum 2\n"), "a quorum, which Weir lacks\n", 1, 0, 1},
	{VS(REAL "quorum 1\n"), "\tcheck tcp every 60s timeout 3s\n}\n", 1, 0, 0},
	// comments
	{VS(REAL "lb_algo sh#x\n"), "\thash source\n", 1, 0, 0},
	{VS(REAL "lb_algo sh!{ x\n"), "\thash source\n", 1, 0, 0},
	{VS(HTTP("url {\npath \"/#!\"\n}\n")), "check http \"/#!\"", 1, 0, 0},
	{"", "there is no virtual_server", 0, 0, 0},
	{"vrrp_instance x {\n}\n", "there is no virtual_server", 0, 0, 0},
	{"virtual_server 192.0.2.10 80 {\n", "line 2: '}' is missing", 0, 0, 0},
	{"virtual_server \"", "left to keepalived", 0, 1, 0},
	{"\n}\n", "line 2: '}' without '{'", 0, 0, 0},
	{"a{b{c{d{e{f{g{h{i{", "line 1: more than 8 blocks", 0, 0, 0},
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
		if (n.lacking != cases[i].lacking)
			fail_msg("%s: %zu\n%s", cases[i].text, n.lacking, text_get(&got));
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
