// SPDX-License-Identifier: GPL-2.0-only
// Own addresses and default gateways, read back from what `ip` has set in a namespace of our own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <net/if.h>

#include "ctl/net/route.h"
#include "tests/unit/net/netns.h"

static bool same(const struct addr *a, const char *text)
{
	struct addr b;

	assert_int_equal(addr_parse(text, strlen(text), &b, NULL), 0);
	return a->family == b.family && !addr_compare(a, &b);
}

static const struct own_addr *find(const struct own_addr *addrs, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (same(&addrs[i].addr, text))
			return &addrs[i];
	return NULL;
}

static void owns_loopback(void **state)
{
	CLEANUP_FREE struct own_addr *addrs = NULL;
	const struct own_addr *lo;
	size_t n = 0;

	assert_int_equal(route_own_addrs(&addrs, &n, NULL), 0);
	lo = find(addrs, n, "127.0.0.1");
	assert_non_null(lo);
	assert_int_equal(lo->prefix_len, 8);
	assert_int_equal(lo->ifindex, if_nametoindex("lo"));
}

static void owns_the_near_end(void **state)
{
	CLEANUP_FREE struct own_addr *addrs = NULL;
	size_t n = 0;

	netns_need();
	assert_true(run("ip addr add 192.0.2.1 peer 192.0.2.2/32 dev v0"));
	assert_int_equal(route_own_addrs(&addrs, &n, NULL), 0);
	assert_non_null(find(addrs, n, "192.0.2.1"));
	assert_null(find(addrs, n, "192.0.2.2"));
	assert_int_equal(find(addrs, n, "192.0.2.1")->ifindex, if_nametoindex("v0"));
}

static void owns_the_near_end_of_v6(void **state)
{
	CLEANUP_FREE struct own_addr *addrs = NULL;
	size_t n = 0;

	netns_need();
	skip_without_ipv6();
	assert_true(run("ip -6 addr add 2001:db8:9::1 peer 2001:db8:9::2/128 dev v0 nodad"));
	assert_int_equal(route_own_addrs(&addrs, &n, NULL), 0);
	assert_non_null(find(addrs, n, "2001:db8:9::1"));
	assert_null(find(addrs, n, "2001:db8:9::2"));
	assert_int_equal(find(addrs, n, "2001:db8:9::1")->ifindex, if_nametoindex("v0"));
}

static bool has_prefix(const struct prefix *all, size_t n, const char *text)
{
	addr_text buf;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(prefix_format(&all[i], buf), text))
			return true;
	return false;
}

// Addresses, and local routes; each once; no loopback networks.
static void local_prefixes(void **state)
{
	CLEANUP_FREE struct prefix *all = NULL;
	size_t n = 0;

	netns_need();
	assert_true(run("ip link set lo up"));
	assert_true(run("ip addr add 192.0.2.33/28 dev v0"));
	assert_true(run("ip route add local 198.51.100.0/25 dev lo"));
	assert_int_equal(route_own_prefixes(&all, &n, NULL), 0);
	assert_true(has_prefix(all, n, "192.0.2.33"));
	assert_true(has_prefix(all, n, "198.51.100.0/25"));
	assert_false(has_prefix(all, n, "192.0.2.32/28"));
	assert_false(has_prefix(all, n, "127.0.0.0/8") || has_prefix(all, n, "127.0.0.1"));
	assert_false(has_prefix(all, n, "::1"));
	for (size_t i = 1; i < n; i++)
		assert_true(prefix_compare(&all[i - 1], &all[i]) < 0);
}

static void local_prefixes_of_v6(void **state)
{
	CLEANUP_FREE struct prefix *all = NULL;
	size_t n = 0;

	netns_need();
	skip_without_ipv6();
	assert_true(run("ip -6 addr add 2001:db8:9::33/64 dev v0")); // still being checked
	assert_true(run("ip -6 route add local 2001:db8:5::/64 dev lo"));
	assert_int_equal(route_own_prefixes(&all, &n, NULL), 0);
	assert_true(has_prefix(all, n, "2001:db8:9::33"));
	assert_true(has_prefix(all, n, "2001:db8:5::/64"));
	assert_false(has_prefix(all, n, "2001:db8:9::/64"));
}

static void no_gateway_without_routes(void **state)
{
	CLEANUP_FREE struct gateway *g = NULL;
	size_t n = 77;

	netns_need();
	assert_int_equal(route_gateways(&g, &n, NULL), 0);
	assert_int_equal(n, 0);
}

static void finds_every_next_hop(void **state)
{
	CLEANUP_FREE struct gateway *g = NULL;
	uint32_t v0 = if_nametoindex("v0");
	size_t n = 0;

	netns_need();
	assert_true(run("ip addr add 10.0.0.1/24 dev v0"));
	assert_true(run("ip route add 198.51.100.0/24 via 10.0.0.9"));
	assert_true(run("ip route add default via 10.0.0.8 table 100"));
	assert_true(run("ip route add unreachable default metric 9000"));
	assert_true(run("ip route add default dev v0 metric 300"));
	assert_true(run("ip route add default via 10.0.0.4 metric 200"));
	assert_true(
		run("ip route add default metric 100 nexthop via 10.0.0.3 nexthop via 10.0.0.2"));
	assert_int_equal(route_gateways(&g, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_true(same(&g[0].addr, "10.0.0.2"));
	assert_true(same(&g[1].addr, "10.0.0.3"));
	assert_int_equal(g[1].metric, 100);
	assert_int_equal(g[1].ifindex, v0);
	assert_true(same(&g[2].addr, "10.0.0.4"));
	assert_int_equal(g[2].ifindex, v0);
	assert_int_equal(g[3].addr.family, 0);
	assert_int_equal(g[3].metric, 300);
	assert_int_equal(g[3].ifindex, v0);
	assert_true(run("ip route flush table main; ip addr flush dev v0"));
}

static void finds_gateways_of_v6(void **state)
{
	CLEANUP_FREE struct gateway *g = NULL;
	size_t n = 0;

	netns_need();
	skip_without_ipv6();
	assert_true(run("ip addr add 10.0.0.1/24 dev v0 && "
			"ip -6 addr add 2001:db8::1/64 dev v0 nodad"));
	assert_true(run("ip -6 route add default via 2001:db8::fe metric 10"));
	assert_true(run("ip -4 route add default via inet6 fe80::7 dev v0 metric 20"));
	assert_int_equal(route_gateways(&g, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_true(same(&g[0].addr, "2001:db8::fe"));
	assert_true(same(&g[1].addr, "fe80::7"));
	assert_true(run("ip route flush table main; ip addr flush dev v0"));
}

static void sees_forwarding(void **state)
{
	netns_need();
	if (!run("echo 0 > /proc/sys/net/ipv4/ip_forward"))
		skip_because("/proc/sys/net cannot be written here");
	assert_false(route_forwards(4));
	assert_true(run("echo 1 > /proc/sys/net/ipv4/conf/default/forwarding"));
	assert_false(route_forwards(4));
	assert_true(run("echo 1 > /proc/sys/net/ipv4/conf/v0/forwarding"));
	assert_true(route_forwards(4));
	assert_false(route_forwards(6));
	assert_true(route_forwards_on(4, "v0"));
	assert_false(route_forwards_on(6, "v0"));
	assert_false(route_forwards_on(4, "lo"));
	assert_false(route_forwards_on(4, "nothing"));
}

static int make_devices(void **state)
{
	if (netns_enter())
		assert_true(run("ip link add v0 type veth peer name v1 && ip link set v0 up && "
				"ip link set v1 up && ip addr flush dev v0"));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owns_loopback),
		cmocka_unit_test(owns_the_near_end),
		cmocka_unit_test(owns_the_near_end_of_v6),
		cmocka_unit_test(local_prefixes),
		cmocka_unit_test(local_prefixes_of_v6),
		cmocka_unit_test(no_gateway_without_routes),
		cmocka_unit_test(finds_every_next_hop),
		cmocka_unit_test(finds_gateways_of_v6),
		cmocka_unit_test(sees_forwarding),
	};

	return cmocka_run_group_tests(tests, make_devices, NULL);
}
