// SPDX-License-Identifier: GPL-2.0-only
// Changes of the network as the kernel announces them, and lost ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>

#include "ctl/net/monitor.h"
#include "tests/unit/net/netns.h"

#define EVENTS 4096

struct seen {
	struct monitor_event at[EVENTS];
	size_t n;
};

static struct seen seen;

static void collect(const struct monitor_event *e, void *ctx)
{
	struct seen *s = ctx;

	if (s->n < EVENTS)
		s->at[s->n++] = *e;
}

static struct monitor *opened(void)
{
	struct monitor *m = NULL;
	struct err err = {0};

	netns_need();
	assert_int_equal(monitor_open(&m, &err), 0);
	seen.n = 0;
	return m;
}

// All that has come by now: the kernel queues before a command returns.
static void read_all(struct monitor *m)
{
	struct pollfd p = {.fd = monitor_fd(m), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 1000), 1);
	assert_int_equal(monitor_read(m, collect, &seen), 0);
}

static const struct monitor_event *find(enum monitor_kind kind)
{
	for (size_t n = seen.n; n-- > 0;)
		if (seen.at[n].kind == kind)
			return &seen.at[n];
	return NULL;
}

static struct prefix prefix(const char *text, uint8_t len)
{
	struct addr a;
	bool mapped;

	assert_int_equal(addr_parse(text, strlen(text), &a, &mapped), 0);
	return prefix_of(&a, len);
}

static void reads_links(void **state)
{
	struct monitor *m = opened();
	const struct monitor_event *e;
	uint32_t index;

	assert_true(
		run("ip link add m0 mtu 1400 address 02:00:00:00:00:07 type veth peer name m1"));
	read_all(m);
	for (size_t n = 0; n < seen.n; n++)
		assert_true(seen.at[n].kind == MONITOR_LINK);
	for (e = seen.at; strcmp(e->link.name, "m0") != 0; e++)
		assert_true(e < seen.at + seen.n);
	assert_int_equal(e->link.mtu, 1400);
	assert_int_equal(e->link.mac[5], 7);
	assert_false(e->link.up);
	index = e->link.index;
	assert_true(run("ip link del m0"));
	seen.n = 0;
	read_all(m);
	assert_non_null(e = find(MONITOR_LINK_GONE));
	for (e = seen.at; e->kind != MONITOR_LINK_GONE || e->link.index != index; e++)
		assert_true(e < seen.at + seen.n);
	monitor_close(m);
}

static void reads_routes(void **state)
{
	struct monitor *m;
	struct prefix want = prefix("192.0.2.0", 24), want6 = prefix("2001:db8::", 32),
		      any = prefix("0.0.0.0", 0);

	netns_need();
	skip_without_ipv6();
	assert_true(run("ip link add m0 type veth peer name m1 && ip link set m0 up && "
			"ip link set m1 up && ip address add 10.9.0.1/24 dev m0"));
	m = opened();
	assert_true(run("ip route add 192.0.2.0/24 dev m0"));
	read_all(m);
	assert_non_null(find(MONITOR_ROUTE));
	assert_memory_equal(&find(MONITOR_ROUTE)->prefix, &want, sizeof(want));
	assert_true(run("ip -6 route add 2001:db8::/32 dev m0"));
	read_all(m);
	assert_memory_equal(&find(MONITOR_ROUTE)->prefix, &want6, sizeof(want6));
	assert_true(run("ip route add default via 10.9.0.2"));
	read_all(m);
	assert_memory_equal(&find(MONITOR_ROUTE)->prefix, &any, sizeof(any));
	seen.n = 0;
	assert_true(run("ip route del 192.0.2.0/24 dev m0"));
	read_all(m);
	assert_memory_equal(&find(MONITOR_ROUTE)->prefix, &want, sizeof(want));
	seen.n = 0;
	assert_true(run("ip rule add from 10.1.0.0/16 lookup 99"));
	read_all(m);
	assert_memory_equal(&find(MONITOR_ROUTE)->prefix, &any, sizeof(any));
	run("ip rule del from 10.1.0.0/16 lookup 99; ip link del m0");
	monitor_close(m);
}

static void reads_neighbours_and_addresses(void **state)
{
	struct prefix want = prefix("10.9.0.9", 32);
	struct monitor *m;

	netns_need();
	assert_true(run("ip link add m0 type veth peer name m1 && ip link set m0 up && "
			"ip link set m1 up"));
	m = opened();
	assert_true(run("ip address add 10.9.0.1/24 dev m0"));
	read_all(m);
	assert_non_null(find(MONITOR_ADDRESS));
	assert_true(run("ip neigh add 10.9.0.9 lladdr 02:00:00:00:00:09 dev m0 nud reachable"));
	read_all(m);
	assert_non_null(find(MONITOR_NEIGH));
	assert_int_equal(find(MONITOR_NEIGH)->neigh.state, NEIGH_KNOWN);
	assert_int_equal(find(MONITOR_NEIGH)->neigh.mac[5], 9);
	assert_int_equal(addr_compare(&find(MONITOR_NEIGH)->neigh.addr, &want.addr), 0);
	seen.n = 0;
	assert_true(run("ip neigh del 10.9.0.9 dev m0"));
	read_all(m);
	assert_non_null(find(MONITOR_NEIGH));
	assert_int_not_equal(find(MONITOR_NEIGH)->neigh.state, NEIGH_KNOWN);
	run("ip link del m0");
	monitor_close(m);
}

static void nothing_is_no_error(void **state)
{
	struct monitor *m = opened();

	assert_int_equal(monitor_read(m, collect, &seen), 0);
	assert_int_equal(seen.n, 0);
	monitor_close(m);
}

// Lost messages are reported once; then the monitor continues.
static void tells_what_is_lost(void **state)
{
	struct monitor *m;
	int codes[4];

	netns_need();
	assert_true(run("ip link add m0 type veth peer name m1"));
	m = opened();
	assert_true(
		run("for n in $(seq 1 4000); do echo link set m0 mtu $((1000 + n %% 400)); done |"
		    " ip -batch -"));
	for (size_t n = 0; n < ARRAY_SIZE(codes); n++)
		codes[n] = monitor_read(m, collect, &seen);
	assert_int_equal(codes[0], -ENOBUFS);
	assert_int_equal(codes[3], 0);
	seen.n = 0;
	assert_true(run("ip link set m0 mtu 1444"));
	read_all(m);
	assert_int_equal(find(MONITOR_LINK)->link.mtu, 1444);
	run("ip link del m0");
	monitor_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_links),
		cmocka_unit_test(reads_routes),
		cmocka_unit_test(reads_neighbours_and_addresses),
		cmocka_unit_test(nothing_is_no_error),
		cmocka_unit_test(tells_what_is_lost),
	};

	netns_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
