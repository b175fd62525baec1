// SPDX-License-Identifier: GPL-2.0-only
// When the counters of a device and of the program prove that the program does not run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/control/unseen.h"

static void two_growths_without_ours(void **state)
{
	struct unseen u = {0};

	(void)state;
	unseen_note(&u, 1000, 50);
	assert_false(unseen_is_doubtful(&u));
	unseen_note(&u, 1100, 50);
	assert_true(unseen_is_doubtful(&u));
	// a card that counts once a second may have received these before the first look
	assert_false(unseen_is_certain(&u));
	unseen_note(&u, 1100, 50);
	assert_false(unseen_is_certain(&u));
	unseen_note(&u, 1101, 50);
	assert_true(unseen_is_certain(&u));
}

static void one_packet_of_ours(void **state)
{
	struct unseen u = {0};

	(void)state;
	unseen_note(&u, 1000, 50);
	unseen_note(&u, 2000, 50);
	unseen_note(&u, 3000, 51);
	assert_false(unseen_is_doubtful(&u));
	unseen_note(&u, 9000, 51); // stays seen
	assert_false(unseen_is_certain(&u));
}

static void a_few_packets(void **state)
{
	struct unseen u = {0};

	(void)state;
	unseen_note(&u, 0, 0);
	for (uint64_t n = 1; n < UNSEEN_PACKETS; n++)
		unseen_note(&u, n, 0);
	assert_false(unseen_is_doubtful(&u));
	unseen_note(&u, UNSEEN_PACKETS, 0);
	assert_true(unseen_is_certain(&u));
}

// Another device, or a counter that was reset.
static void a_counter_that_falls(void **state)
{
	struct unseen u = {0};

	(void)state;
	unseen_note(&u, 1000, 50);
	unseen_note(&u, 10, 50);
	unseen_note(&u, 20, 50);
	unseen_note(&u, 30, 50);
	assert_false(unseen_is_doubtful(&u));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_growths_without_ours),
		cmocka_unit_test(one_packet_of_ours),
		cmocka_unit_test(a_few_packets),
		cmocka_unit_test(a_counter_that_falls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
