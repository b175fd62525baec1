// SPDX-License-Identifier: GPL-2.0-only
// Facts about drivers: limits, and which have queues for XDP_TX and redirects.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/net/native.h"

static void limits_of_a_single_buffer(void **state)
{
	(void)state;
	assert_int_equal(native_mtu_of("virtio_net", false), 3490);
	assert_int_equal(native_mtu_of("virtio_net", true), 0);
	// it was seen to lose frames, whatever the kernel reports
	assert_int_equal(native_mtu_of("vmxnet3", false), 3054);
	assert_int_equal(native_mtu_of("vmxnet3", true), 3054);
	assert_int_equal(native_mtu_of("veth", false), 0);
	assert_int_equal(native_mtu_of("", false), 0);
}

static void drivers_with_habits(void **state)
{
	(void)state;
	assert_true(native_is_forgotten("vmxnet3"));
	assert_false(native_is_forgotten("virtio_net"));
	assert_false(native_is_forgotten("veth"));
	assert_true(native_sends_with_program("virtio_net"));
	assert_false(native_sends_with_program("veth"));
}

static bool shares(uint32_t now, uint32_t max, uint32_t cpus, bool attached)
{
	struct native_queues q = {now, max, cpus, attached};

	assert_false(native_shares_queues("veth", &q));
	assert_false(native_shares_queues("vmxnet3", &q));
	return native_shares_queues("virtio_net", &q);
}

static void a_queue_for_each_processor(void **state)
{
	(void)state;
	assert_true(shares(1, 1, 2, false));
	assert_false(shares(2, 4, 2, false));
	assert_true(shares(3, 4, 2, false));
	assert_true(shares(2, 3, 2, false));
	assert_false(shares(1, 2, 1, false));
	// attached, two queues of the stack and two reserved, or none reserved
	assert_false(shares(4, 4, 2, true));
	assert_true(shares(2, 3, 2, true));
	assert_true(shares(1, 1, 2, true));
	// the driver does not report it
	assert_false(shares(0, 0, 2, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_of_a_single_buffer),
		cmocka_unit_test(drivers_with_habits),
		cmocka_unit_test(a_queue_for_each_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
