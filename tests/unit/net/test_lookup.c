// SPDX-License-Identifier: GPL-2.0-only
// Route look-ups: answers read from messages, and the kernel's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/rtnetlink.h>

#include "ctl/net/route.h"
#include "tests/unit/net/message.h"
#include "tests/unit/net/netns.h"

static bool same(const struct addr *a, const char *text)
{
	struct addr b = message_addr(text);

	return a->family == b.family && !addr_compare(a, &b);
}

static struct rtmsg *begin(struct message *m, uint8_t family, uint8_t type)
{
	struct rtmsg *msg = message_begin(m, RTM_NEWROUTE, sizeof(*msg));

	msg->rtm_family = family;
	msg->rtm_type = type;
	return msg;
}

static void put_mtu(struct message *m, uint32_t mtu)
{
	struct nlattr *nest = mnl_attr_nest_start(message_head(m), RTA_METRICS);

	mnl_attr_put_u32(message_head(m), RTAX_ADVMSS, 1234);
	mnl_attr_put_u32(message_head(m), RTAX_MTU, mtu);
	mnl_attr_nest_end(message_head(m), nest);
}

static void reads_a_route(void **state)
{
	struct message m;
	struct lookup l;

	begin(&m, AF_INET, RTN_UNICAST);
	message_put_addr(&m, RTA_DST, "192.0.2.9");
	mnl_attr_put_u32(message_head(&m), RTA_OIF, 7);
	message_put_addr(&m, RTA_GATEWAY, "10.0.0.1");
	message_put_addr(&m, RTA_PREFSRC, "10.0.0.2");
	put_mtu(&m, 1400);
	assert_true(lookup_from_message(message_head(&m), &l));
	assert_int_equal(l.kind, LOOKUP_UNICAST);
	assert_int_equal(l.ifindex, 7);
	assert_int_equal(l.mtu, 1400);
	assert_true(same(&l.gateway, "10.0.0.1"));
	assert_true(same(&l.source, "10.0.0.2"));
}

static void reads_a_gateway_of_the_other_family(void **state)
{
	const uint8_t via[18] = {AF_INET6, 0, 0xfe, 0x80, [17] = 7};
	struct message m;
	struct lookup l;

	begin(&m, AF_INET, RTN_UNICAST);
	mnl_attr_put(message_head(&m), RTA_VIA, sizeof(via), via);
	assert_true(lookup_from_message(message_head(&m), &l));
	assert_true(same(&l.gateway, "fe80::7"));
	assert_int_equal(l.source.family, 0);
	assert_int_equal(l.mtu, 0);
}

static void reads_kinds(void **state)
{
	static const struct {
		uint8_t type;
		enum lookup_kind kind;
	} cases[] = {
		{RTN_LOCAL, LOOKUP_LOCAL},        {RTN_BROADCAST, LOOKUP_GROUP},
		{RTN_MULTICAST, LOOKUP_GROUP},    {RTN_ANYCAST, LOOKUP_GROUP},
		{RTN_UNREACHABLE, LOOKUP_REFUSE}, {RTN_BLACKHOLE, LOOKUP_REFUSE},
		{RTN_PROHIBIT, LOOKUP_REFUSE},
	};
	struct message m;
	struct lookup l;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&m, AF_INET6, cases[i].type);
		assert_true(lookup_from_message(message_head(&m), &l));
		assert_int_equal(l.kind, cases[i].kind);
	}
	begin(&m, AF_INET6, RTN_UNICAST);
	mnl_attr_put(message_head(&m), RTA_ENCAP, 0, NULL);
	assert_true(lookup_from_message(message_head(&m), &l));
	assert_int_equal(l.kind, LOOKUP_ENCAP);
}

static void refuses_other_messages(void **state)
{
	struct lookup l = {.ifindex = 77};
	struct message m;

	message_begin(&m, RTM_NEWLINK, sizeof(struct rtmsg));
	assert_false(lookup_from_message(message_head(&m), &l));
	message_begin(&m, RTM_NEWROUTE, 4);
	assert_false(lookup_from_message(message_head(&m), &l));
	assert_int_equal(l.ifindex, 77);
	begin(&m, AF_INET, RTN_UNICAST); // attributes of the wrong length say nothing
	mnl_attr_put_u16(message_head(&m), RTA_OIF, 7);
	message_put_addr(&m, RTA_GATEWAY, "fe80::1");
	assert_true(lookup_from_message(message_head(&m), &l));
	assert_int_equal(l.ifindex, 0);
	assert_int_equal(l.gateway.family, 0);
}

static int ask(const char *text, struct lookup *ret)
{
	struct addr dest = message_addr(text);

	return lookup_route(&dest, ret);
}

static void asks_the_kernel(void **state)
{
	struct lookup l;

	netns_need();
	assert_int_equal(ask("192.0.2.1", &l), -ENETUNREACH);
	assert_int_equal(ask("2001:db8::1", &l), -ENETUNREACH);
	assert_int_equal(ask("127.0.0.1", &l), 0);
	assert_int_equal(l.kind, LOOKUP_LOCAL);
	assert_true(run("ip route add unreachable 192.0.2.0/24 && ip route add prohibit "
			"198.51.100.0/24 && ip route add blackhole 203.0.113.0/24"));
	assert_int_equal(ask("192.0.2.1", &l), -EHOSTUNREACH);
	assert_int_equal(ask("198.51.100.1", &l), -EACCES);
	assert_int_equal(ask("203.0.113.1", &l), -EINVAL);
	assert_true(run("ip addr add 10.0.0.1/24 dev v0 && ip route add 10.1.0.0/16 via 10.0.0.9 "
			"mtu 1300"));
	assert_int_equal(ask("10.1.2.3", &l), 0);
	assert_int_equal(l.mtu, 1300);
	assert_true(same(&l.gateway, "10.0.0.9"));
	assert_true(same(&l.source, "10.0.0.1"));
	assert_int_equal(ask("10.0.0.255", &l), 0);
	assert_int_equal(l.kind, LOOKUP_GROUP);
	assert_true(run("ip route flush table main; ip addr flush dev v0"));
}

static bool has_choice(const char *text)
{
	struct addr dest = message_addr(text), any = {0};

	return lookup_has_choice(&dest, &any);
}

static void several_next_hops(void **state)
{
	netns_need();
	assert_true(run("ip addr add 10.0.0.1/24 dev v0 && "
			"ip addr add 2001:db8:9::1/64 dev v0 nodad"));
	assert_true(run("ip route add 10.1.0.0/16 via 10.0.0.9 && "
			"ip route add 10.2.0.0/16 nexthop via 10.0.0.8 nexthop via 10.0.0.9 && "
			"ip route add 2001:db8:1::/48 via 2001:db8:9::9 && "
			"ip route add 2001:db8:2::/48 nexthop via 2001:db8:9::8 nexthop via "
			"2001:db8:9::9"));
	assert_false(has_choice("10.0.0.7"));
	assert_false(has_choice("10.1.2.3"));
	assert_true(has_choice("10.2.2.3"));
	assert_false(has_choice("2001:db8:1::3"));
	assert_true(has_choice("2001:db8:2::3"));
	assert_false(has_choice("10.9.9.9"));
	assert_true(run("ip nexthop add id 8 via 10.0.0.8 dev v0 && "
			"ip nexthop add id 9 via 10.0.0.9 dev v0 && ip nexthop add id 1 group 8/9 "
			"&& ip route add 10.3.0.0/16 nhid 1 && ip route add 10.4.0.0/16 nhid 8"));
	assert_true(has_choice("10.3.2.3"));
	assert_false(has_choice("10.4.2.3"));
	assert_true(run("ip route flush table main; ip -6 route flush table main; "
			"ip nexthop flush; ip addr flush dev v0"));
}

static int make_devices(void **state)
{
	if (netns_enter())
		assert_true(run("ip link add v0 type veth peer name v1 && ip link set v0 up && "
				"ip link set v1 up"));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_route),
		cmocka_unit_test(reads_a_gateway_of_the_other_family),
		cmocka_unit_test(reads_kinds),
		cmocka_unit_test(refuses_other_messages),
		cmocka_unit_test(asks_the_kernel),
		cmocka_unit_test(several_next_hops),
	};

	return cmocka_run_group_tests(tests, make_devices, NULL);
}
