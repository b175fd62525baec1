// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/import_host: which devices are above an interface, and which of them bypass
// the hook forward.
#include "tests/unit/base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/cmd/import_host.h"

#define LINKS 5

static const struct link eth0 = {.name = "eth0", .index = 2};

static const struct {
	struct link above[LINKS - 1];
	const char *message; // of --forward; NULL: not refused
} hosts[] = {
	{{{.name = "eth1", .index = 3}, {.name = "br0", .index = 4, .kind = "bridge"}}, NULL},
	{{{.name = "eth0.10", .index = 3, .kind = "vlan", .lower = 2}}, NULL},
	{{{.name = "p0", .index = 3, .kind = "veth", .lower = 2, .master = 4},
	  {.name = "br0", .index = 4, .kind = "bridge"}},
	 NULL},
	{{{.name = "eth0.10", .index = 3, .kind = "vlan", .lower = 2, .master = 4},
	  {.name = "br10", .index = 4, .kind = "bridge"}},
	 "the bridge 'br10' is above 'eth0'"},
	{{{.name = "mac0", .index = 3, .kind = "macvlan", .lower = 2}},
	 "the macvlan 'mac0' is above 'eth0'"},
	{{{.name = "ip0", .index = 3, .kind = "ipvlan", .lower = 2}},
	 "the ipvlan 'ip0' is above 'eth0'"},
	{{{.name = "mac0", .index = 3, .kind = "macvlan", .lower = 2, .lower_elsewhere = true}},
	 NULL},
};

static int read_host(const struct link *above, struct link own, bool forward, struct err *err)
{
	static const char *const interfaces[] = {"eth0"};
	const struct import_options options = {
		.interfaces = interfaces, .n_interfaces = 1, .forward = forward};
	CLEANUP_IMPORT_HOST struct import_host host = {.links = mem_zalloc(LINKS, sizeof(own))};
	int code;

	host.links[host.n_links++] = own;
	for (size_t i = 0; i < LINKS - 1 && above[i].index; i++)
		host.links[host.n_links++] = above[i];
	code = import_host_devices(&host, &options, err);
	assert_int_equal(host.devices.n, host.n_links);
	assert_int_equal(host.devices.at[0].on, 1);
	return code;
}

static void test_devices_above(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct err err = {0};

		assert_int_equal(read_host(hosts[i].above, eth0, false, &err), 0);
		if (!read_host(hosts[i].above, eth0, true, &err) != !hosts[i].message ||
		    !strstr(err.text, hosts[i].message ? hosts[i].message : ""))
			fail_msg("%s: %s", hosts[i].above[0].name, err.text);
	}
}

// eth0 is a port of a bond, and the bond of a bridge.
static void test_ports(void **state)
{
	static const struct link above[LINKS - 1] = {
		{.name = "bond0", .index = 3, .kind = "bond", .master = 4},
		{.name = "br0", .index = 4, .kind = "bridge"}};
	struct link port = eth0;
	struct err err = {0};

	port.master = 3;
	assert_true(read_host(above, port, true, &err) < 0);
	assert_non_null(strstr(err.text, "the bridge 'br0' is above 'eth0'"));
	port.master = 4;
	assert_true(read_host(above, port, true, &err) < 0);
	port.master = 0;
	assert_int_equal(read_host(above, port, true, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices_above),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
