// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/families.h and of the families in which rules ask for routes.
#include "tests/unit/policy/world.h"

#include "ctl/control/families.h"
#include "ctl/control/unroutable.h"

static const struct {
	const char *rule;
	uint32_t families, routes;
	uint64_t on;
} samples[] = {
	{"drop unroutable", FAMILIES_BOTH, FAMILIES_BOTH, UINT64_MAX},
	{"drop from 0.0.0.0/0 unroutable", FAMILIES_4, FAMILIES_4, UINT64_MAX},
	{"drop to 2001:db8::/32 unroutable", FAMILIES_6, FAMILIES_6, UINT64_MAX},
	{"drop from not 192.0.2.1 on eth1 unroutable", FAMILIES_BOTH, FAMILIES_BOTH, 2},
	{"drop from @seen to 192.0.2.1 unroutable", FAMILIES_4, FAMILIES_4, UINT64_MAX},
	{"drop from 192.0.2.1 on eth0 ttl 3", FAMILIES_4, 0, 0},
};

static void test_families(void **state)
{
	for (size_t n = 0; n < ARRAY_SIZE(samples); n++) {
		CLEANUP_FREE char *policy = mem_printf(
			"interface eth0, eth1\nset seen dynamic expire 10m\n%s\n", samples[n].rule);
		struct environment environment = {0};
		struct resolved *r = environment_load(&environment, policy);

		if (!r)
			fail_msg("%s", environment.messages);
		assert_int_equal(families_of_rule(r, &r->rules[0]), samples[n].families);
		assert_int_equal(unroutable_of_rule(r, 0), samples[n].routes);
		assert_int_equal(unroutable_of(r), samples[n].routes);
		assert_true(unroutable_on(r) == samples[n].on);
		resolved_free(r);
		environment_free(&environment);
	}
}

static void test_all_rules(void **state)
{
	struct environment environment = {0};
	struct resolved *r = environment_load(
		&environment, "drop to 2001:db8::1 unroutable\ndrop to 192.0.2.1 unroutable\n");

	assert_non_null(r);
	assert_int_equal(unroutable_of(r), FAMILIES_BOTH);
	resolved_free(r);
	environment_free(&environment);
}

static void test_messages(void **state)
{
	assert_string_equal(unroutable_packets(FAMILIES_4), " of IPv4");
	assert_string_equal(unroutable_packets(FAMILIES_6), " of IPv6");
	assert_string_equal(unroutable_packets(FAMILIES_BOTH), "");
	assert_string_equal(unroutable_mend(FAMILIES_4), "sysctl -w net.ipv4.conf.lo.forwarding=1");
	assert_string_equal(unroutable_mend(FAMILIES_6), "sysctl -w net.ipv6.conf.lo.forwarding=1");
	assert_string_equal(
		unroutable_mend(FAMILIES_BOTH),
		"sysctl -w net.ipv4.conf.lo.forwarding=1 net.ipv6.conf.lo.forwarding=1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_all_rules),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
