// SPDX-License-Identifier: GPL-2.0-only
// Unit tests: what the datapath knows of devices that routes name (ctl/control/macs.h and
// ctl/datapath/routed.h).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/limits.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/control/macs.h"
#include "ctl/control/unroutable.h"

#define SOME 40

// Interface `number` with n devices above it, one in each VLAN.
static void add_interface(struct routes *r, uint32_t number, uint32_t n)
{
	for (uint32_t vid = 0; vid <= n; vid++)
		vec_push(r, ((struct route_device){.key = {100 * number + vid, number},
						   .frames = {(uint16_t)vid, vid > 0, 0}}));
	r->known |= iface_bit(number);
}

static void test_other_interfaces_do_not_count(void **state)
{
	CLEANUP_ROUTES struct routes want = {0}, there = {0};

	add_interface(&want, 1, SOME);
	add_interface(&want, 2, SOME);
	add_interface(&there, 1, SOME);
	add_interface(&there, 2, SOME - 1);
	assert_true(routes_equal(&want, &there, iface_bit(1)));
	assert_false(routes_equal(&want, &there, iface_bit(2)));
	assert_false(routes_equal(&there, &want, iface_bit(2)));
	assert_int_equal(macs_routes_of(&want, &there, 1), MACS_ROUTES_KNOWN);
	assert_int_equal(macs_routes_of(&want, &there, 2), MACS_ROUTES_STALE);
	assert_int_equal(macs_routes_of(&there, &want, 2), MACS_ROUTES_STALE);
}

static void test_other_tags(void **state)
{
	CLEANUP_ROUTES struct routes want = {0}, there = {0};

	add_interface(&want, 1, SOME);
	add_interface(&there, 1, SOME);
	there.at[SOME].frames.vid++;
	assert_int_equal(macs_routes_of(&want, &there, 1), MACS_ROUTES_STALE);
}

static void test_an_interface_in_a_vrf(void **state)
{
	CLEANUP_ROUTES struct routes want = {0}, there = {0};

	assert_int_equal(macs_routes_of(&want, &there, 1), MACS_ROUTES_ELSEWHERE);
	add_interface(&there, 1, SOME); // it was in none before
	assert_int_equal(macs_routes_of(&want, &there, 1), MACS_ROUTES_STALE);
}

static void test_no_room(void **state)
{
	CLEANUP_ROUTES struct routes want = {0}, there = {0};

	add_interface(&want, 1, SOME);
	add_interface(&want, 2, WEIR_ROUTED - 1);
	add_interface(&there, 1, SOME);
	assert_int_equal(macs_routes_of(&want, &there, 1), MACS_ROUTES_KNOWN);
	assert_int_equal(macs_routes_of(&want, &there, 2), MACS_ROUTES_FULL);
	want.n -= SOME + 1; // now there is room, after another look
	assert_int_equal(macs_routes_of(&want, &there, 2), MACS_ROUTES_STALE);
}

static void test_texts(void **state)
{
	CLEANUP_FREE char *vrf = unroutable_gap(MACS_ROUTES_ELSEWHERE, "eth1");
	CLEANUP_FREE char *full = unroutable_gap(MACS_ROUTES_FULL, "eth1");

	assert_null(unroutable_gap(MACS_ROUTES_KNOWN, "eth1"));
	assert_null(unroutable_gap(MACS_ROUTES_STALE, "eth1"));
	assert_string_equal(vrf, "'unroutable' matches no packet on 'eth1': the interface, or a "
				 "device above it, is in a VRF or a port of a switch with rules of "
				 "its own (Open vSwitch)");
	assert_string_equal(full, "'unroutable' matches no packet on 'eth1': the interfaces have "
				  "more than 8192 devices above them");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_interfaces_do_not_count),
		cmocka_unit_test(test_other_tags),
		cmocka_unit_test(test_an_interface_in_a_vrf),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
