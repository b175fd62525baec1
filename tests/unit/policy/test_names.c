// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of the fixed tables (names.c), of /etc/services (services.c), host names.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/domain.h"
#include "ctl/policy/host.h"
#include "ctl/policy/keywords.h"
#include "ctl/policy/names.h"
#include "ctl/policy/services.h"

static void test_keywords(void **state)
{
	static const char *const yes[] = {"add",  "any",    "drop", "tcp",
					  "vlan", "weight", "wide", "self"};
	static const char *const no[] = {"", "a", "Drop", "zzz", "icmp", "eth0", "syn", "dropp"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		assert_true(keyword_is(yes[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		assert_false(keyword_is(no[i]));
}

static void test_protos(void **state)
{
	static const struct {
		const char *name;
		uint8_t number;
	} all[] = {
		{"tcp", 6},    {"udp", 17},   {"icmp", 1},      {"icmp6", 58},
		{"sctp", 132}, {"gre", 47},   {"esp", 50},      {"ah", 51},
		{"igmp", 2},   {"ipip", 4},   {"ip6", 41},      {"ospf", 89},
		{"pim", 103},  {"vrrp", 112}, {"udplite", 136}, {"dccp", 33},
	};
	uint8_t n = 7;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		assert_int_equal(names_proto(all[i].name, &n), 0);
		assert_int_equal(n, all[i].number);
		assert_string_equal(names_of_proto(all[i].number), all[i].name);
	}
	assert_int_equal(names_proto("255", &n), 0);
	assert_int_equal(n, 255);
	assert_null(names_of_proto(255));
	assert_int_equal(names_proto("256", &n), -ERANGE);
	assert_int_equal(names_proto("06", &n), -EINVAL);
	assert_int_equal(names_proto("TCP", &n), -EINVAL);
}

static void test_icmp(void **state)
{
	uint8_t n;

	assert_int_equal(names_icmp("echo-request", 4, &n), 0);
	assert_int_equal(n, 8);
	assert_int_equal(names_icmp("echo-request", 6, &n), 0);
	assert_int_equal(n, 128);
	assert_int_equal(names_icmp("redirect", 4, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(names_icmp("redirect", 6, &n), 0);
	assert_int_equal(n, 137);
	assert_int_equal(names_icmp("packet-too-big", 4, &n), -ENOENT);
	assert_int_equal(names_icmp("timestamp-request", 6, &n), -ENOENT);
	for (unsigned t = 0; t < 256; t++)
		assert_int_equal(names_is_neighbour_discovery((uint8_t)t), t >= 133 && t <= 136);
}

static unsigned dscp_of(const char *name)
{
	struct eval e = {.domain = &domain_dscp};
	unsigned value;

	domain_dscp.read(&e, name);
	assert_int_equal(e.readings.n, 1);
	value = (uint32_t)e.readings.at[0].first;
	assert_int_equal(e.readings.at[0].last, value);
	vec_free(&e.readings);
	return value;
}

static void test_dscp_and_ethertypes(void **state)
{
	uint16_t values[2];
	char name[8];
	size_t count;

	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "cs%u", i);
		assert_int_equal(dscp_of(name), i * 8);
	}
	for (unsigned x = 1; x <= 4; x++)
		for (unsigned y = 1; y <= 3; y++) { // RFC 2597 section 6
			snprintf(name, sizeof(name), "af%u%u", x, y);
			assert_int_equal(dscp_of(name), 8 * x + 2 * y);
		}
	assert_int_equal(dscp_of("ef"), 46);
	assert_int_equal(dscp_of("7"), 7);
	assert_int_equal(names_ethertype("mpls", values, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(values[1], 0x8848);
	assert_int_equal(names_ethertype("any", values, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(names_ethertype("vlan", values, &count), -ENOENT);
}

static void test_nearest(void **state)
{
	assert_string_equal(keyword_nearest_statement("dorp"), "drop");
	assert_string_equal(names_nearest(NAMES_ICMP, "nd-redirct"), "nd-redirect");
	assert_null(names_nearest(NAMES_PROTOS, "xyzzy"));
	assert_true(names_has(NAMES_ICMP, "packet-too-big"));
	assert_false(names_has(NAMES_FLAGS, "none"));
}

static void test_services(void **state)
{
	static const char text[] = "# comment\n"
				   "http\t80/tcp\t\twww # web\r\n"
				   "  ssh 22/tcp\n"
				   "http 81/tcp\n"
				   "bad\n"
				   "worse x/tcp\n"
				   "big 65536/tcp\n"
				   "\n"
				   "last 7/udp";
	struct services s = {0};
	uint16_t port = 0;

	services_read(&s, text, strlen(text));
	assert_int_equal(services_find(&s, "http", "tcp", &port), 0);
	assert_int_equal(port, 80);
	assert_int_equal(services_find(&s, "www", "tcp", &port), 0);
	assert_int_equal(port, 80);
	assert_int_equal(services_find(&s, "ssh", "tcp", &port), 0);
	assert_int_equal(services_find(&s, "last", "udp", &port), 0);
	assert_int_equal(port, 7);
	assert_int_equal(services_find(&s, "http", "udp", &port), -ENOENT);
	assert_int_equal(services_find(&s, "worse", "tcp", &port), -ENOENT);
	assert_int_equal(services_find(&s, "big", "tcp", &port), -ENOENT);
	assert_int_equal(services_find(&s, "#", "tcp", &port), -ENOENT);
	services_free(&s);
}

static void test_hosts(void **state)
{
	static const char *const good[] = {"a",        "a.b",  "x.com.", "_dmarc.x.com",
					   "1.2.3.x4", "a-b.c"};
	static const char *const bad[] = {"",    ".",       "a..b", ".a", "-a.b",   "a-.b",
					  "a.1", "1.2.3.4", "a b",  "a*", "a.b/24", "a,b"};
	char buf[160], label[80], normal[16];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(host_problem(good[i], buf, sizeof(buf)));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_non_null(host_problem(bad[i], buf, sizeof(buf)));
	memset(label, 'a', sizeof(label));
	label[63] = '\0';
	assert_null(host_problem(label, buf, sizeof(buf)));
	label[63] = 'a';
	label[64] = '\0';
	assert_non_null(host_problem(label, buf, sizeof(buf)));
	host_normal("X.Com.", normal);
	assert_string_equal(normal, "x.com");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keywords), cmocka_unit_test(test_protos),
		cmocka_unit_test(test_icmp),     cmocka_unit_test(test_dscp_and_ethertypes),
		cmocka_unit_test(test_nearest),  cmocka_unit_test(test_services),
		cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
