// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of VLAN devices above an interface, and of what a policy loses without tags.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/base/mem.h"
#include "ctl/control/tags.h"

enum { ETH0 = 2, ETH1, BOND, BRIDGE, TAGGED, INNER, OTHERS };

static const struct link *above(const struct link *links, size_t n, uint32_t index)
{
	for (size_t l = 0; l < n; l++)
		if (links[l].index == index)
			return tags_vlan_above(links, n, &links[l]);
	return NULL;
}

static void devices_above(void **state)
{
	const struct link links[] = {
		{.name = "eth0", .index = ETH0, .master = BOND},
		{.name = "eth1", .index = ETH1},
		{.name = "bond0", .index = BOND, .kind = "bond", .master = BRIDGE},
		{.name = "br0", .index = BRIDGE, .kind = "bridge"},
		{.name = "inner", .index = INNER, .kind = "vlan", .lower = TAGGED},
		{.name = "br0.7", .index = TAGGED, .kind = "vlan", .lower = BRIDGE},
	};
	struct link elsewhere[] = {
		{.name = "eth1", .index = ETH1},
		{.name = "v",
		 .index = OTHERS,
		 .kind = "vlan",
		 .lower = ETH1,
		 .lower_elsewhere = true},
	};

	assert_string_equal(above(links, ARRAY_SIZE(links), BRIDGE)->name, "inner");
	assert_ptr_equal(above(links, ARRAY_SIZE(links), ETH0), &links[4]); // a tag in a tag
	assert_ptr_equal(above(links, ARRAY_SIZE(links), BOND), &links[4]);
	assert_ptr_equal(above(links, ARRAY_SIZE(links), TAGGED), &links[4]);
	assert_null(above(links, ARRAY_SIZE(links), ETH1));
	assert_null(above(links, ARRAY_SIZE(links), INNER));
	assert_null(above(elsewhere, 2, ETH1));
	elsewhere[1].lower_elsewhere = false;
	assert_string_equal(above(elsewhere, 2, ETH1)->name, "v");
}

// Devices never form a circle, but a list that is read while they change may show one.
static void a_circle(void **state)
{
	const struct link links[] = {
		{.name = "a", .index = 2, .kind = "vlan", .lower = 3, .master = 3},
		{.name = "b", .index = 3, .kind = "vlan", .lower = 2, .master = 2},
		{.name = "eth0", .index = 4},
	};

	assert_null(tags_vlan_above(links, 3, &links[2]));
}

static void warns(const struct tags *t, enum iface_mode mode, const char *vlan, struct tags_use use,
		  const char *text)
{
	CLEANUP_FREE char *got = tags_warning(t, "eth0", mode, vlan, &use);

	if (text)
		assert_string_equal(got, text);
	else
		assert_null(got);
}

#define BEFORE "'eth0': VLAN tags are removed before XDP sees the packet: "
#define AFTER  " (ethtool -K eth0 rxvlan off)"

static void what_is_lost(void **state)
{
	const struct tags mlx5 = {.removed = true, .device = "eth0", .feature = "rxvlan"};
	const struct tags kept = {.device = "eth0", .feature = "rxvlan"};
	const struct tags_use rejects = {.rejects = true}, serves = {.services = true};
	const struct tags_use matches = {.matches = true}, all = {true, true, true};

	warns(&mlx5, IFACE_NATIVE, "eth0.7", rejects,
	      BEFORE "answers of 'reject' leave without the tag of 'eth0.7'" AFTER);
	warns(&mlx5, IFACE_NATIVE, "eth0.7", serves,
	      BEFORE "packets of services leave without the tag of 'eth0.7'" AFTER);
	warns(&mlx5, IFACE_NATIVE, "eth0.7", all,
	      BEFORE "answers of 'reject' and packets of services leave without the tag of "
		     "'eth0.7', and rules with 'vlan' do not match" AFTER);
	// The kernel sends the tag that it has kept.
	warns(&mlx5, IFACE_GENERIC, "eth0.7", rejects, NULL);
	warns(&mlx5, IFACE_GENERIC, "eth0.7", all, BEFORE "rules with 'vlan' do not match" AFTER);
	// No VLAN device is above.
	warns(&mlx5, IFACE_NATIVE, NULL, rejects, NULL);
	warns(&mlx5, IFACE_NATIVE, NULL, matches, BEFORE "rules with 'vlan' do not match" AFTER);
	warns(&mlx5, IFACE_NATIVE, "eth0.7", (struct tags_use){0}, NULL);
	warns(&kept, IFACE_NATIVE, "eth0.7", all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_above),
		cmocka_unit_test(a_circle),
		cmocka_unit_test(what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
