// SPDX-License-Identifier: GPL-2.0-only
// Next hops: through VLAN devices, from synthetic links; end to end, in a namespace.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <net/if_arp.h>

#include "ctl/net/native.h"
#include "ctl/net/nexthop.h"
#include "tests/unit/net/message.h"
#include "tests/unit/net/peer.h"

static struct peer peer;

static bool same(const struct addr *a, const char *text)
{
	struct addr b = message_addr(text);

	return a->family == b.family && !addr_compare(a, &b);
}

// Synthetic links

static const struct link links[] = {
	{.index = 1, .name = "lo", .type = ARPHRD_LOOPBACK, .mtu = 65536},
	{.index = 2, .name = "eth0", .type = ARPHRD_ETHER, .mtu = 9000, .mac = {2, 0, 0, 0, 0, 2}},
	{.index = 5,
	 .name = "eth0.7",
	 .kind = "vlan",
	 .type = ARPHRD_ETHER,
	 .mtu = 1496,
	 .mac = {2, 0, 0, 0, 0, 5},
	 .lower = 2,
	 .vlan = 7,
	 .vlan_type = 0x8100},
	{.index = 6,
	 .name = "qinq",
	 .type = ARPHRD_ETHER,
	 .lower = 5,
	 .vlan = 8,
	 .vlan_type = 0x8100},
	{.index = 7,
	 .name = "ad",
	 .type = ARPHRD_ETHER,
	 .lower = 2,
	 .vlan = 9,
	 .vlan_type = 0x88a8},
	{.index = 8,
	 .name = "moved",
	 .type = ARPHRD_ETHER,
	 .lower = 2,
	 .lower_elsewhere = true,
	 .vlan = 9,
	 .vlan_type = 0x8100},
	{.index = 9, .name = "wg0", .kind = "wireguard", .type = ARPHRD_NONE, .mtu = 1420},
	{.index = 10,
	 .name = "lost",
	 .type = ARPHRD_ETHER,
	 .lower = 4,
	 .vlan = 9,
	 .vlan_type = 0x8100},
};

static int made(const struct lookup *route, struct nexthop *ret, struct err *err)
{
	struct addr dest = message_addr("192.0.2.1");

	return nexthop_from(&dest, route, links, ARRAY_SIZE(links), ret, err);
}

static void plain_device(void **state)
{
	const struct lookup route = {.ifindex = 2, .gateway = message_addr("10.0.0.9")};
	struct nexthop hop;

	assert_int_equal(made(&route, &hop, NULL), 0);
	assert_false(hop.local);
	assert_int_equal(hop.ifindex, 2);
	assert_int_equal(hop.vlan, 0);
	assert_int_equal(hop.mtu, 9000);
	assert_int_equal(hop.mac_own[5], 2);
	assert_string_equal(hop.name, "eth0");
	assert_true(same(&hop.gateway, "10.0.0.9"));
}

static void vlan_device(void **state)
{
	struct lookup route = {.ifindex = 5, .source = message_addr("10.7.0.1")};
	struct nexthop hop;

	assert_int_equal(made(&route, &hop, NULL), 0);
	assert_int_equal(hop.ifindex, 2);
	assert_string_equal(hop.name, "eth0");
	assert_int_equal(hop.vlan, 7);
	assert_int_equal(hop.mtu, 1496);
	assert_int_equal(hop.mac_own[5], 5); // the address that the neighbours know
	assert_true(same(&hop.source, "10.7.0.1"));
	route.mtu = 1400;
	assert_int_equal(made(&route, &hop, NULL), 0);
	assert_int_equal(hop.mtu, 1400);
	assert_true(hop.mtu_of_route);
	route.mtu = 1497;
	assert_int_equal(made(&route, &hop, NULL), 0);
	assert_int_equal(hop.mtu, 1496);
}

static void devices_that_cannot_be(void **state)
{
	static const struct {
		uint32_t ifindex;
		const char *words;
	} cases[] = {
		{6, "the device below is a VLAN device too"},
		{7, "802.1ad"},
		{8, "in another network namespace"},
		{10, "in another network namespace"},
		{9, "'wg0', which is not an Ethernet device (wireguard)"},
		{1, "'lo', which is not an Ethernet device"},
		{4, "no longer exists"},
	};
	struct nexthop hop = {.vlan = 77};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct lookup route = {.ifindex = cases[i].ifindex};
		struct err err = {0};

		assert_true(made(&route, &hop, &err) < 0);
		assert_non_null(strstr(err.text, cases[i].words));
		assert_int_equal(hop.vlan, 77);
	}
}

static void routes_that_lead_nowhere(void **state)
{
	static const enum lookup_kind kinds[] = {LOOKUP_GROUP, LOOKUP_REFUSE, LOOKUP_ENCAP};
	const struct lookup local = {.kind = LOOKUP_LOCAL, .ifindex = 1};
	struct nexthop hop;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct lookup route = {.kind = kinds[i], .ifindex = 2};
		struct err err = {0};

		assert_int_equal(made(&route, &hop, &err), -EHOSTUNREACH);
		assert_int_equal(err.kind, ERR_REFUSED);
		assert_non_null(strstr(err.text, "'192.0.2.1'"));
	}
	assert_int_equal(made(&local, &hop, NULL), 0);
	assert_true(hop.local);
	assert_int_equal(hop.ifindex, 0);
}

static void link_local_is_ambiguous(void **state)
{
	struct addr dest = message_addr("fe80::1");
	struct nexthop_answer a;

	assert_int_equal(nexthop_find(&dest, 1, 0, &a, NULL), 0);
	assert_true(a.code < 0);
	assert_non_null(strstr(a.err.text, "'fe80::1' is a link-local address"));
}

// In a namespace, with a second host

enum { DESTS = 8 };

static void finds_all(void **state)
{
	static const char *const texts[DESTS] = {
		"10.0.0.2", "10.0.1.77",    "192.0.2.1", "10.0.0.1",
		"10.9.0.1", "198.51.100.1", "10.0.9.9",  "2001:db8:1::5",
	};
	struct addr dests[DESTS];
	struct nexthop_answer *a;

	netns_need();
	a = mem_zalloc(DESTS, sizeof(*a));
	for (size_t i = 0; i < DESTS; i++)
		dests[i] = message_addr(texts[i]);
	assert_int_equal(nexthop_find(dests, DESTS, 300, a, NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(a[i].code, 0);
		assert_int_equal(a[i].hop.ifindex, if_nametoindex("v0"));
		assert_string_equal(a[i].hop.kind, "veth");
		assert_int_equal(a[i].hop.mac[5], 0x11);
		assert_int_equal(a[i].hop.mac_own[5], 0x10);
		assert_true(same(&a[i].hop.source, "10.0.0.1"));
	}
	assert_int_equal(a[0].hop.mtu, 1500);
	assert_int_equal(a[0].hop.gateway.family, 0);
	assert_int_equal(a[2].hop.mtu, 1400);
	assert_true(same(&a[2].hop.gateway, "10.0.0.2"));
	assert_true(a[3].hop.local);
	assert_non_null(strstr(a[4].err.text, "no route to '10.9.0.1'"));
	assert_string_equal(a[4].err.hint, "ip route add 10.9.0.1 via GATEWAY dev IFACE");
	assert_non_null(strstr(a[5].err.text, "the gateway '10.0.9.8' of '198.51.100.1' does not "
					      "answer ARP on 'v0'"));
	assert_non_null(strstr(a[6].err.text, "'10.0.9.9' does not answer ARP on 'v0'"));
	assert_non_null(strstr(a[6].err.hint, "ip neigh replace 10.0.9.9 lladdr MAC dev v0"));
	assert_non_null(strstr(a[7].err.hint, "ip -6 route add 2001:db8:1::5"));
	free(a);
}

// The command of the hint repairs it.
static void hints_that_mend(void **state)
{
	struct nexthop_answer a;
	struct addr dest = message_addr("10.0.9.10");

	netns_need();
	assert_true(run("ip neigh replace 10.0.9.10 lladdr 02:00:00:00:00:99 dev v0"));
	assert_int_equal(nexthop_find(&dest, 1, 0, &a, NULL), 0);
	assert_int_equal(a.code, 0);
	assert_int_equal(a.hop.mac[5], 0x99);
	dest = message_addr("10.9.0.2");
	assert_true(run("ip route add 10.9.0.2 via 10.0.0.2 dev v0"));
	assert_int_equal(nexthop_find(&dest, 1, 1000, &a, NULL), 0);
	assert_int_equal(a.code, 0);
}

// A veth transmits XDP frames when its other end has GRO (or a program).
static void sees_who_transmits(void **state)
{
	struct addr dest = message_addr("10.0.0.2");
	struct nexthop_answer a;
	uint64_t bits;

	netns_need();
	assert_true(peer_run(&peer, "ethtool -K v1 gro off"));
	assert_int_equal(nexthop_find(&dest, 1, 1000, &a, NULL), 0);
	if (xdp_features(a.hop.ifindex, &bits) == -EOPNOTSUPP) {
		assert_int_equal(a.hop.xmit, NEXTHOP_XMIT_UNKNOWN);
		skip_because("this kernel does not say what drivers do with XDP frames");
	}
	assert_int_equal(a.hop.xmit, NEXTHOP_XMIT_NO);
	assert_true(peer_run(&peer, "ethtool -K v1 gro on"));
	assert_int_equal(nexthop_find(&dest, 1, 1000, &a, NULL), 0);
	assert_int_equal(a.hop.xmit, NEXTHOP_XMIT_YES);
}

static void gateway_of_the_other_family(void **state)
{
	struct addr dest = message_addr("203.0.113.1");
	struct nexthop_answer a;

	netns_need();
	skip_without_ipv6();
	assert_true(run("ip -6 addr add 2001:db8::1/64 dev v0 nodad"));
	assert_true(peer_run(&peer, "ip -6 addr add 2001:db8::2/64 dev v1 nodad"));
	assert_true(run("ip route add 203.0.113.0/24 via inet6 2001:db8::2 dev v0"));
	assert_int_equal(nexthop_find(&dest, 1, 8000, &a, NULL), 0);
	assert_int_equal(a.code, 0);
	assert_true(same(&a.hop.gateway, "2001:db8::2"));
	assert_int_equal(a.hop.mac[5], 0x11);
}

// Where the kernel has VLAN devices: the tag, the device below, and a neighbour in that VLAN.
static void through_a_vlan(void **state)
{
	struct addr dest = message_addr("10.7.0.2");
	struct nexthop_answer a;

	netns_need();
	if (run("ip link add link v0 name v0.7 type vlan id 7 2>&1 | grep 'Unknown device type'"))
		skip_because("this kernel has no VLAN devices");
	assert_true(run("ip link set v0.7 mtu 1400 address 02:00:00:00:00:17 up && "
			"ip addr add 10.7.0.1/24 dev v0.7"));
	assert_true(peer_run(&peer, "ip link add link v1 name v1.7 type vlan id 7 && "
				    "ip link set v1.7 address 02:00:00:00:00:18 up && "
				    "ip addr add 10.7.0.2/24 dev v1.7"));
	assert_int_equal(nexthop_find(&dest, 1, 5000, &a, NULL), 0);
	assert_int_equal(a.code, 0);
	assert_int_equal(a.hop.vlan, 7);
	assert_int_equal(a.hop.ifindex, if_nametoindex("v0"));
	assert_string_equal(a.hop.kind, "veth");
	assert_int_equal(a.hop.mtu, 1400);
	assert_int_equal(a.hop.mac_own[5], 0x17);
	assert_int_equal(a.hop.mac[5], 0x18);
}

static void no_carrier(void **state)
{
	struct addr dest = message_addr("10.0.9.12");
	struct nexthop_answer a;

	netns_need();
	// The kernel notifies the other end up to a second later.
	assert_true(peer_run(&peer, "ip link set v1 down"));
	for (int tries = 0; tries < 40; tries++) {
		assert_int_equal(nexthop_find(&dest, 1, 50, &a, NULL), 0);
		assert_true(a.code < 0);
		if (strstr(a.err.hint, "carrier"))
			break;
	}
	assert_non_null(strstr(a.err.hint, "'v0' has no carrier"));
}

static int start_peer(void **state)
{
	if (!netns_enter())
		return 0;
	assert_true(peer_start(&peer, "v0", "v1"));
	assert_true(
		run("ip link set v0 address 02:00:00:00:00:10 && ip addr add 10.0.0.1/16 dev v0 && "
		    "ip route add 192.0.2.0/24 via 10.0.0.2 mtu 1400 && "
		    "ip route add 198.51.100.0/24 via 10.0.9.8"));
	assert_true(peer_run(&peer, "ip link set v1 address 02:00:00:00:00:11 && "
				    "ip addr add 10.0.0.2/16 dev v1 && "
				    "ip route add local 10.0.1.0/24 dev lo"));
	return 0;
}

static int stop_peer(void **state)
{
	peer_stop(&peer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_device),
		cmocka_unit_test(vlan_device),
		cmocka_unit_test(devices_that_cannot_be),
		cmocka_unit_test(routes_that_lead_nowhere),
		cmocka_unit_test(link_local_is_ambiguous),
		cmocka_unit_test(finds_all),
		cmocka_unit_test(hints_that_mend),
		cmocka_unit_test(sees_who_transmits),
		cmocka_unit_test(gateway_of_the_other_family),
		cmocka_unit_test(through_a_vlan),
		cmocka_unit_test(no_carrier),
	};

	return cmocka_run_group_tests(tests, start_peer, stop_peer);
}
