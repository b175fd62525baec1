// SPDX-License-Identifier: GPL-2.0-only
// The share of a capture: it falls as the ring fills, rises again, and keeps to a rate.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/control/capture_share.h"

#define POLL_NS 20000000ull
#define ROOM    8000.0 // records

static void test_all_while_there_is_room(void **state)
{
	struct capture_share s = {0};

	capture_share_begin(&s, 1e6);
	assert_int_equal(s.share, CAPTURE_ALL);
	for (double full = 0; full <= 0.5; full += 0.1) {
		capture_share_next(&s, &(struct capture_seen){.full = full, .packets = 1});
		assert_int_equal(s.share, CAPTURE_ALL);
	}
}

static void test_falls_and_rises(void **state)
{
	struct capture_share s = {.share = CAPTURE_ALL};
	int rounds = 0;

	capture_share_next(&s, &(struct capture_seen){.full = 1});
	assert_in_range(s.share, CAPTURE_ALL / 2 - 1, CAPTURE_ALL / 2 + 1);
	capture_share_next(&s, &(struct capture_seen){.full = 1, .lost = 1});
	assert_in_range(s.share, CAPTURE_ALL / 4 - 1, CAPTURE_ALL / 4 + 1);
	capture_share_next(&s, &(struct capture_seen){.full = 0.4});
	assert_in_range(s.share, CAPTURE_ALL / 4 - 1, CAPTURE_ALL / 4 + 1);
	for (; s.share != CAPTURE_ALL; rounds++)
		capture_share_next(&s, &(struct capture_seen){.full = 0});
	assert_in_range(rounds, 5, 10);
}

static void test_never_zero(void **state)
{
	struct capture_share s = {.share = CAPTURE_ALL, .rate = 1};

	for (int n = 0; n < 100; n++)
		capture_share_next(&s, &(struct capture_seen){.full = 1,
							      .lost = 100,
							      .packets = 1000000,
							      .span_ns = POLL_NS});
	assert_int_equal(s.share, 1);
}

// A flood of a constant rate: the ring stays between a quarter and a half, without losses.
static void test_settles(void **state)
{
	struct capture_share s = {.share = CAPTURE_ALL};
	uint64_t lost = 0;

	for (int n = 0; n < 100; n++) {
		double arrived = 50000.0 * s.share / CAPTURE_ALL;
		struct capture_seen seen = {.full = arrived / ROOM, .span_ns = POLL_NS};

		if (arrived > ROOM) {
			seen.full = 1;
			seen.lost = (uint64_t)(arrived - ROOM);
		}
		lost = n < 10 ? 0 : lost + seen.lost;
		capture_share_next(&s, &seen);
	}
	assert_int_equal(lost, 0);
	assert_in_range(50000.0 * s.share / CAPTURE_ALL, ROOM / 4, ROOM);
}

static void test_rate(void **state)
{
	struct capture_share s = {.rate = 100};
	uint64_t sum = 0;
	double exact = 0;

	capture_share_begin(&s, 50);
	assert_int_equal(s.share, CAPTURE_ALL);
	capture_share_begin(&s, 1000);
	assert_in_range(s.share, CAPTURE_ALL / 10 - 9, CAPTURE_ALL / 10 + 9);
	for (int n = 0; n < 500; n++) { // 10 s of 50,000/s
		uint64_t packets;

		exact += 1000.0 * s.share / CAPTURE_ALL;
		packets = (uint64_t)exact;
		exact -= (double)packets;
		sum += n < 50 ? 0 : packets;
		capture_share_next(&s,
				   &(struct capture_seen){.packets = packets, .span_ns = POLL_NS});
	}
	assert_in_range(sum, 800, 1000);
}

static void test_format(void **state)
{
	capture_share_text text;

	assert_string_equal(capture_share_format(CAPTURE_ALL, text), "1 of 1");
	assert_string_equal(capture_share_format(1u << 31, text), "1 of 2.000");
	assert_string_equal(capture_share_format(1u << 22, text), "1 of 1024");
	assert_string_equal(capture_share_format(1, text), "1 of 4294967296");
	assert_string_equal(capture_share_format(0, text), "1 of 4294967296");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_while_there_is_room),
		cmocka_unit_test(test_falls_and_rises),
		cmocka_unit_test(test_never_zero),
		cmocka_unit_test(test_settles),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
