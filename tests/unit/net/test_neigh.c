// SPDX-License-Identifier: GPL-2.0-only
// Neighbours in messages; hundreds requested under one deadline, from a second host.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <time.h>

#include "ctl/net/neigh.h"
#include "tests/unit/net/message.h"
#include "tests/unit/net/peer.h"

// Few enough for the kernel's table, which all network namespaces share (gc_thresh2: 512).
enum { ANSWERING = 200, SILENT = 60 };

static struct peer peer;

static const uint8_t mac[] = {2, 0, 0, 0, 0, 9};

static struct nlmsghdr *made(struct message *m, uint16_t nud, size_t mac_len, uint8_t flags)
{
	struct ndmsg *msg = message_begin(m, RTM_NEWNEIGH, sizeof(*msg));

	msg->ndm_family = AF_INET;
	msg->ndm_ifindex = 3;
	msg->ndm_state = nud;
	msg->ndm_flags = flags;
	message_put_addr(m, NDA_DST, "10.0.0.9");
	if (mac_len)
		mnl_attr_put(message_head(m), NDA_LLADDR, mac_len, mac);
	return message_head(m);
}

static void reads_states(void **state)
{
	static const struct {
		uint16_t nud;
		size_t mac_len;
		enum neigh_state state;
		bool stale;
	} cases[] = {
		{NUD_REACHABLE, 6, NEIGH_KNOWN, false},  {NUD_PERMANENT, 6, NEIGH_KNOWN, false},
		{NUD_NOARP, 6, NEIGH_KNOWN, false},      {NUD_STALE, 6, NEIGH_KNOWN, true},
		{NUD_DELAY, 6, NEIGH_KNOWN, true},       {NUD_PROBE, 6, NEIGH_KNOWN, true},
		{NUD_INCOMPLETE, 0, NEIGH_ASKED, false}, {NUD_FAILED, 0, NEIGH_FAILED, false},
		{NUD_FAILED, 6, NEIGH_FAILED, false},    {NUD_NONE, 0, NEIGH_NONE, false},
		{NUD_REACHABLE, 4, NEIGH_NONE, false},   {NUD_REACHABLE, 0, NEIGH_NONE, false},
	};
	struct message m;
	struct neigh n;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(neigh_from_message(made(&m, cases[i].nud, cases[i].mac_len, 0), &n));
		assert_int_equal(n.ifindex, 3);
		assert_int_equal(n.state, cases[i].state);
		assert_int_equal(n.stale, cases[i].stale);
		if (n.state == NEIGH_KNOWN)
			assert_memory_equal(n.mac, mac, sizeof(mac));
	}
}

static void refuses_other_messages(void **state)
{
	struct message m;
	struct neigh n;

	assert_false(neigh_from_message(made(&m, NUD_PERMANENT, 6, NTF_PROXY), &n));
	message_begin(&m, RTM_NEWNEIGH, sizeof(struct ndmsg)); // no address
	assert_false(neigh_from_message(message_head(&m), &n));
	message_begin(&m, RTM_DELNEIGH, sizeof(struct ndmsg));
	assert_false(neigh_from_message(message_head(&m), &n));
	message_begin(&m, RTM_NEWNEIGH, 4);
	assert_false(neigh_from_message(message_head(&m), &n));
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct neigh wanted(const char *fmt, unsigned n)
{
	CLEANUP_FREE char *text = mem_printf("%s%u", fmt, n);

	return (struct neigh){.ifindex = if_nametoindex("v0"), .addr = message_addr(text)};
}

// All that answer, some twice, and a few that never answer: one deadline.
static void asks_many_at_once(void **state)
{
	struct neigh all[ANSWERING + SILENT + 1];
	uint64_t begin = now_ms();
	struct err err = {0};
	size_t n = 0;

	netns_need();
	for (unsigned i = 1; i <= ANSWERING; i++)
		all[n++] = wanted("10.0.1.", i);
	all[n++] = wanted("10.0.1.", 1);
	for (unsigned i = 1; i <= SILENT; i++)
		all[n++] = wanted("10.0.2.", i);
	assert_int_equal(neigh_resolve(all, n, 400, &err), 0);
	assert_in_range(now_ms() - begin, 400, 1500);
	for (size_t i = 0; i <= ANSWERING; i++) {
		assert_int_equal(all[i].state, NEIGH_KNOWN);
		assert_int_equal(all[i].mac[5], 0x11);
	}
	for (size_t i = ANSWERING + 1; i < n; i++)
		assert_int_equal(all[i].state, NEIGH_ASKED);
}

static void returns_when_all_have_answered(void **state)
{
	uint64_t begin = now_ms();
	struct neigh n[2] = {wanted("10.0.0.", 2), wanted("10.0.1.", 201)};

	netns_need();
	assert_int_equal(neigh_resolve(n, 2, 30000, NULL), 0);
	assert_in_range(now_ms() - begin, 0, 5000);
	assert_int_equal(n[0].state, NEIGH_KNOWN);
	assert_int_equal(n[1].state, NEIGH_KNOWN);
	assert_int_equal(neigh_resolve(NULL, 0, 30000, NULL), 0);
}

// A neighbour that failed once is asked again; one that fails permanently is not waited for.
static void asks_who_failed_before(void **state)
{
	struct neigh n = wanted("10.0.3.", 1);
	uint64_t begin;

	netns_need();
	assert_true(run("echo 50 > /proc/sys/net/ipv4/neigh/v0/retrans_time_ms"));
	begin = now_ms();
	assert_int_equal(neigh_resolve(&n, 1, 30000, NULL), 0);
	assert_int_equal(n.state, NEIGH_FAILED);
	assert_in_range(now_ms() - begin, 100, 10000);
	assert_true(peer_run(&peer, "ip route add local 10.0.3.0/24 dev lo"));
	assert_int_equal(neigh_resolve(&n, 1, 5000, NULL), 0);
	assert_int_equal(n.state, NEIGH_KNOWN);
}

static void leaves_permanent_ones_alone(void **state)
{
	struct neigh n = wanted("10.0.4.", 1);

	netns_need();
	assert_true(run("ip neigh add 10.0.4.1 lladdr 02:00:00:00:00:09 dev v0 nud permanent"));
	assert_int_equal(neigh_resolve(&n, 1, 0, NULL), 0);
	assert_int_equal(n.state, NEIGH_KNOWN);
	assert_memory_equal(n.mac, mac, sizeof(mac));
	assert_true(run("ip neigh show 10.0.4.1 dev v0 | grep -q PERMANENT"));
}

static void uses_stale_ones_at_once(void **state)
{
	struct neigh n = wanted("10.0.5.", 1);

	netns_need();
	assert_true(run("ip neigh add 10.0.5.1 lladdr 02:00:00:00:00:09 dev v0 nud stale"));
	assert_int_equal(neigh_resolve(&n, 1, 0, NULL), 0);
	assert_int_equal(n.state, NEIGH_KNOWN);
	assert_true(n.stale);
	// and gets them confirmed
	assert_true(run("ip neigh show 10.0.5.1 dev v0 | grep -qE 'DELAY|PROBE'"));
}

static void asks_by_neighbour_discovery(void **state)
{
	struct neigh n = {.ifindex = if_nametoindex("v0"), .addr = message_addr("2001:db8::2")};

	netns_need();
	skip_without_ipv6();
	assert_true(run("ip -6 addr add 2001:db8::1/64 dev v0 nodad"));
	assert_true(peer_run(&peer, "ip -6 addr add 2001:db8::2/64 dev v1 nodad"));
	// The link-local address, the source of the request, is tentative for up to two seconds.
	assert_int_equal(neigh_resolve(&n, 1, 8000, NULL), 0);
	assert_int_equal(n.state, NEIGH_KNOWN);
	assert_int_equal(n.mac[5], 0x11);
}

static void says_which_device_has_gone(void **state)
{
	struct neigh n = {.ifindex = 0x7ffffff0, .addr = message_addr("10.0.0.9")};
	struct err err = {0};

	assert_true(neigh_resolve(&n, 1, 0, &err) < 0);
	assert_int_equal(err.kind, ERR_SYSTEM);
	assert_non_null(strstr(err.text, "'10.0.0.9'"));
}

static int start_peer(void **state)
{
	if (!netns_enter())
		return 0;
	assert_true(peer_start(&peer, "v0", "v1"));
	assert_true(run("ip addr add 10.0.0.1/16 dev v0"));
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
		cmocka_unit_test(reads_states),
		cmocka_unit_test(refuses_other_messages),
		cmocka_unit_test(asks_many_at_once),
		cmocka_unit_test(returns_when_all_have_answered),
		cmocka_unit_test(asks_who_failed_before),
		cmocka_unit_test(leaves_permanent_ones_alone),
		cmocka_unit_test(uses_stale_ones_at_once),
		cmocka_unit_test(asks_by_neighbour_discovery),
		cmocka_unit_test(says_which_device_has_gone),
	};

	return cmocka_run_group_tests(tests, start_peer, stop_peer);
}
