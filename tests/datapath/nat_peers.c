// SPDX-License-Identifier: GPL-2.0-only
// Answers to clients whose interface gets another device, or that are too long for it.
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "ctl/datapath/parts.h"
#include "tests/datapath/nat_packet.h"
#include "tests/datapath/nat_world.h"
#include "tests/datapath/suite.h"

#define SYN 0x02
#define ACK 0x10

static const uint8_t router[6] = {2, 0, 0, 0, 0, 2}, own[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t next_hop[6] = {2, 0, 0, 0, 0, 9}, neighbour[6] = NAT_WORLD_NEIGHBOUR;

static struct nat_sent packet_from(const uint8_t mac[6], const struct nat_names_of_frame *names,
				   uint8_t flags)
{
	struct nat_sent p = {.names = *names, .proto = IPPROTO_TCP, .flags = flags, .ttl = 64};

	memcpy(p.mac, mac, 6);
	memcpy(p.mac_own, own, 6);
	return p;
}

// ---- connections --------------------------------------------------------------------------------

struct flow {
	struct nat_sent asks, answers;
};

// A connection that talks.
static struct flow open_flow(struct test *t, const struct nat_rig *r, uint8_t family, bool fullnat)
{
	struct nat_names_of_frame client =
		nat_world_names(family, CLIENT, fullnat ? VIP_FULLNAT : VIP_NAT);
	struct nat_names_of_frame to_backend, from_backend;
	struct flow f = {.asks = packet_from(router, &client, SYN)};
	struct outcome o = nat_send(r, &f.asks);

	CHECK(t, o.verdict == XDP_TX, "no connection was opened");
	f.asks.flags = ACK;
	o = nat_send(r, &f.asks);
	CHECK(t, o.verdict == XDP_TX && o.out, "the connection is not known");
	to_backend = nat_world_read(o.out->at);
	from_backend = nat_world_turned(&to_backend);
	f.answers = packet_from(next_hop, &from_backend, ACK);
	return f;
}

// The answer leaves, with this verdict to this MAC address.
static void check_way(struct test *t, const struct nat_rig *r, const struct flow *f,
		      uint32_t verdict, const uint8_t to[6], const char *what)
{
	struct outcome o = nat_send(r, &f->answers);

	CHECK(t, o.verdict == verdict, "%s: verdict %u", what, o.verdict);
	CHECK(t, o.moved_n == 1 && o.moved[0].reason == REASON_PASS_ANSWER_NAT,
	      "%s: not counted as an answer", what);
	CHECK(t, o.out && !memcmp(o.out->at, to, 6), "%s: to another next hop", what);
}

// ---- devices ------------------------------------------------------------------------------------

static void set_device(const struct nat_rig *r, uint32_t ifindex)
{
	struct iface iface = {.name = "x", .ifindex = ifindex, .state = IFACE_ATTACHED};
	struct err err = {0};

	if (instance_set_iface(r->rig->instance, RIG_IFACE, &iface, &err))
		test_die(&err);
}

static void add_egress(const struct nat_rig *r, uint32_t ifindex)
{
	struct err err = {0};

	if (parts_add_device(r->policy->c->generation, ifindex, &err))
		test_die(&err);
}

// A device to the clients; 0: the test is skipped.
static uint32_t begin_route(struct test *t, const struct nat_rig *r)
{
	uint32_t ifindex = nat_world_route();

	if (ifindex)
		add_egress(r, ifindex);
	else
		test_skip(t, "no veth devices can be made here");
	return ifindex;
}

// The device of the interface changes: the routing table is asked until the client sends, also if
// the device has returned.
static void change_device(struct test *t, const struct nat_rig *r, const struct flow *f)
{
	check_way(t, r, f, XDP_TX, router, "before");
	set_device(r, if_nametoindex("natany1"));
	check_way(t, r, f, XDP_REDIRECT, neighbour, "another device");
	set_device(r, r->rig->ifindex);
	check_way(t, r, f, XDP_REDIRECT, neighbour, "the same device again");
	nat_send(r, &f->asks);
	check_way(t, r, f, XDP_TX, router, "after a packet of the client");
}

static size_t count_peers(const struct nat_rig *r)
{
	size_t n = 0;

	for (size_t p = 1; p < NAT_PEERS; p++)
		n += r->nat->peer[p].word[0] != 0;
	return n;
}

// More often than a peer has places.
static void test_another_device(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	for (uint8_t family = 4; family <= 6 && begin_route(t, r); family += 2) {
		struct flow near = open_flow(t, r, family, false);
		struct flow far = open_flow(t, r, family, true);

		add_egress(r, if_nametoindex("natany1"));
		for (int n = 0; n <= NAT_PEER_TRIES; n++) {
			change_device(t, r, &near);
			change_device(t, r, &far);
		}
		CHECK(t, count_peers(r) == 1, "%zu peers", count_peers(r));
		nat_world_unroute();
	}
	nat_rig_free(r);
}

// A peer that has ended returns with the next packet from its next hop, for all its clients.
static void test_a_peer_returns(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct flow near = open_flow(t, r, 4, false), far = open_flow(t, r, 4, true);

	set_device(r, 0);
	set_device(r, r->rig->ifindex);
	nat_send(r, &near.asks);
	check_way(t, r, &far, XDP_TX, router, "another client of the router has sent");
	nat_rig_free(r);
}

// ---- answers that are too long ------------------------------------------------------------------

#define HEADERS(family) ((size_t)((family) == 4 ? 40 : 60)) // of IP and TCP

// An answer of so many bytes of IP.
static struct flow answers_of(const struct flow *f, size_t length)
{
	struct flow sized = *f;

	sized.answers.payload = length - HEADERS(f->answers.names.family);
	return sized;
}

// The backend is told what fits.
static void check_too_long(struct test *t, const struct nat_rig *r, const struct flow *f,
			   size_t length, uint32_t mtu, const char *what)
{
	const struct flow sized = answers_of(f, length);
	struct outcome o = nat_send(r, &sized.answers);
	const bool v4 = f->answers.names.family == 4;
	size_t icmp = v4 ? 34 : 54;

	CHECK(t, o.verdict == XDP_TX, "%s: verdict %u", what, o.verdict);
	CHECK(t, o.moved_n == 1 && o.moved[0].reason == REASON_PASS_TOO_BIG,
	      "%s: not counted as too big", what);
	CHECK(t, o.out && !memcmp(o.out->at, next_hop, 6), "%s: not to the backend", what);
	CHECK(t, o.out && o.out->at[icmp] == (v4 ? 3 : 2), "%s: not ICMP", what);
	CHECK(t, o.out && (uint32_t)(o.out->at[icmp + 6] << 8 | o.out->at[icmp + 7]) == mtu,
	      "%s: another MTU", what);
}

static void check_length(struct test *t, const struct nat_rig *r, const struct flow *f,
			 size_t length, const uint8_t to[6], const char *what)
{
	const struct flow sized = answers_of(f, length);

	check_way(t, r, &sized, XDP_REDIRECT, to, what);
}

// The client's packets arrive on the device from now on.
static void move_client(const struct nat_rig *r, const struct flow *f, uint32_t ifindex)
{
	set_device(r, ifindex);
	nat_send(r, &f->asks);
}

static void check_device(struct test *t, const struct nat_rig *r, const struct flow *f,
			 uint32_t ifindex)
{
	nat_world_set_mtu(1400);
	move_client(r, f, ifindex);
	CHECK(t, r->nat->device[RIG_IFACE].mtu == 1400, "the MTU is not known");
	check_length(t, r, f, 1400, router, "as long as the MTU");
	check_too_long(t, r, f, 1401, 1400, "longer than the MTU");
	nat_world_set_mtu(1500);
	check_length(t, r, f, 1401, router, "after the MTU has grown");
	check_too_long(t, r, f, 1501, 1500, "longer than the new MTU");
	r->nat->device[RIG_IFACE].mtu = 0;
	check_length(t, r, f, 1500, router, "with a device that is not known");
	set_device(r, r->rig->ifindex);
}

static void check_route(struct test *t, const struct nat_rig *r, const struct flow *f)
{
	nat_world_set_mtu(1400);
	set_device(r, 0);
	check_length(t, r, f, 1400, neighbour, "as long as the MTU of the route's device");
	check_too_long(t, r, f, 1401, 1400, "longer than the MTU of the route's device");
	nat_world_set_route_mtu(1300);
	check_length(t, r, f, 1300, neighbour, "as long as the MTU of the route");
	check_too_long(t, r, f, 1301, 1300, "longer than the MTU of the route");
	set_device(r, r->rig->ifindex);
}

static void test_too_long(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	uint32_t ifindex;

	for (int n = 0; n < 4 && (ifindex = begin_route(t, r)); n++) {
		struct flow f = open_flow(t, r, n & 1 ? 6 : 4, n & 2);

		check_device(t, r, &f, ifindex);
		check_route(t, r, &f);
		nat_world_unroute();
	}
	nat_rig_free(r);
}

const struct named_test nat_peers_tests[] = {
	{"nat: another device of an interface", test_another_device},
	{"nat: a peer that returns", test_a_peer_returns},
	{"nat: an answer that is too long", test_too_long},
	{0},
};
