// SPDX-License-Identifier: GPL-2.0-only
// Tests which rules fail while connection tracking is off.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/control/tracking.h"
#include "ctl/net/conntrack.h"

#define BOTH (CONNTRACK_4 | CONNTRACK_6)

static void test_established(void **state)
{
	uint32_t needs = BOTH << TRACKING_PLAIN, only6 = CONNTRACK_6 << TRACKING_PLAIN;

	assert_false(tracking_fails(needs, 0));
	assert_false(tracking_fails(needs, CONNTRACK_4));
	assert_true(tracking_fails(needs, BOTH));
	assert_true(tracking_fails(only6, CONNTRACK_6));
	assert_false(tracking_fails(only6, CONNTRACK_4));
}

static void test_not_established(void **state)
{
	assert_false(tracking_fails(0, BOTH));
	assert_false(tracking_fails(BOTH, 0));
	assert_true(tracking_fails(BOTH, CONNTRACK_6));
	assert_false(tracking_fails(CONNTRACK_4, CONNTRACK_6));
	assert_true(tracking_fails(CONNTRACK_4 | BOTH << TRACKING_PLAIN, CONNTRACK_4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_established),
		cmocka_unit_test(test_not_established),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
