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

	unseen_note(&u, 0, 0);
	for (uint64_t n = 1; n < UNSEEN_PACKETS; n++)
		unseen_note(&u, n, 0);
	assert_false(unseen_is_doubtful(&u));
	unseen_note(&u, UNSEEN_PACKETS, 0);
	assert_true(unseen_is_certain(&u));
}

// The device is another one, or a counter was reset.
static void a_counter_that_falls(void **state)
{
	struct unseen u = {0};

	unseen_note(&u, 1000, 50);
	unseen_note(&u, 10, 50);
	unseen_note(&u, 20, 50);
	unseen_note(&u, 30, 50);
	assert_false(unseen_is_doubtful(&u));
}

// Commands that do not wait look at a device that receives, and at a program that counts nothing.
static void commands_far_apart(void **state)
{
	struct unseen u = {0};

	unseen_note_later(&u, 1000, 50, 0);
	unseen_note_later(&u, 1500, 50, 15000);
	assert_false(unseen_is_certain(&u));
	unseen_note_later(&u, 2000, 50, 15000);
	assert_true(unseen_is_certain(&u));
	unseen_note_later(&u, 2500, 50, 15000); // stays so
	assert_true(unseen_is_certain(&u));
	unseen_note_later(&u, 3000, 51, 15000);
	assert_false(unseen_is_certain(&u));
	unseen_note_later(&u, 3500, 51, 15000); // the look before is the first one
	assert_false(unseen_is_certain(&u));
	unseen_note_later(&u, 4000, 51, 15000);
	assert_true(unseen_is_certain(&u));
}

// The firmware of the card receives a frame now and then.
static void frames_of_hours(void **state)
{
	struct unseen u = {0};

	for (uint64_t n = 0; n < 1000; n++) {
		unseen_note_later(&u, 1000 + n, 50, 15000);
		assert_false(unseen_is_certain(&u));
	}
	// as many as at the slowest that counts, and one less
	for (uint64_t less = 0; less < 2; less++) {
		u = (struct unseen){0};
		for (uint64_t n = 0; n < 3; n++)
			unseen_note_later(&u, n * (UNSEEN_PACKETS * 6 - less), 50,
					  UNSEEN_WAIT_MS * 6);
		assert_int_equal(unseen_is_certain(&u), !less);
	}
}

// The second of two concurrent runs reports nothing, and does not restart the measurement.
static void commands_at_once(void **state)
{
	struct unseen u = {0};

	for (uint64_t n = 0; n < 3; n++) {
		unseen_note_later(&u, 1000 + n * 500, 50, 15000);
		unseen_note_later(&u, 1000 + n * 500, 50, 1);
	}
	assert_true(unseen_is_certain(&u));
}

static void a_counter_that_falls_later(void **state)
{
	struct unseen u = {0};

	unseen_note_later(&u, 100000, 50, 0);
	for (uint64_t n = 0; n < 3; n++) {
		assert_false(unseen_is_certain(&u));
		unseen_note_later(&u, n * 1000, 50, 15000);
	}
	assert_true(unseen_is_certain(&u));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_growths_without_ours),
		cmocka_unit_test(one_packet_of_ours),
		cmocka_unit_test(a_few_packets),
		cmocka_unit_test(a_counter_that_falls),
		cmocka_unit_test(commands_far_apart),
		cmocka_unit_test(frames_of_hours),
		cmocka_unit_test(commands_at_once),
		cmocka_unit_test(a_counter_that_falls_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
