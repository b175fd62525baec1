// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of common/service.h: words of slots and pins, and what their times mean.
#include "tests/unit/base/unit.h"

#include "common/limits-policy.h"
#include "common/service.h"
#include "ctl/base/mem.h"

#define ID_MAX (SERVICE_BACKENDS - 1)

static void test_slot_words(void **state)
{
	uint64_t slot = slot_pack(0x2aaa, 0x1555, 0x123456789);

	assert_int_equal(slot_owner(slot), 0x2aaa);
	assert_int_equal(slot_former(slot), 0x1555);
	assert_int_equal(slot_since(slot), 0x123456789);
	assert_int_equal(slot_pack(ID_MAX, ID_MAX, SLOT_SINCE), UINT64_MAX);
	assert_int_equal(slot_pack(ID_MAX, 0, 0), 0xfffc000000000000);
	assert_int_equal(slot_pack(0, ID_MAX, 0), 0x0003fff000000000);
	assert_int_equal(slot_pack(0, 0, UINT64_MAX), 0x0000000fffffffff);
}

static void test_pin_words(void **state)
{
	uint64_t pin = pin_pack(0xdeadbeef, 0x2bcd, PIN_TALKS, 0xfedc);

	assert_int_equal(pin_flow(pin), 0xdeadbeef);
	assert_int_equal(pin_backend(pin), 0x2bcd);
	assert_int_equal(pin_level(pin), PIN_TALKS);
	assert_int_equal(pin_time_of(pin), 0xfedc);
	assert_int_equal(pin_pack(UINT32_MAX, ID_MAX, 3, 0xffff), UINT64_MAX);
	assert_int_equal(pin_pack(0, ID_MAX, 0, 0), 0xfffc0000);
	assert_int_equal(pin_pack(0, 0, 3, 0x10000), 0x30000);
}

// Changing for longer than requested, by less than 31 jiffies; from any start.
static void check_hold(uint64_t start, uint64_t idle, uint32_t hold)
{
	uint32_t ticks = slot_ticks(idle, hold);
	uint64_t slot = slot_pack(2, 1, slot_time(start)), asked = idle * hold;

	assert_int_equal(slot_phase(slot, start, ticks), SLOT_CHANGING);
	assert_int_equal(slot_phase(slot, start + asked, ticks), SLOT_CHANGING);
	assert_int_equal(slot_phase(slot, start + asked + 31, ticks), SLOT_PINS_ONLY);
	assert_int_equal(slot_phase(slot, start + 1000 * asked + 1000, ticks), SLOT_PINS_ONLY);
}

static void test_hold(void **state)
{
	const uint64_t wrap = 1ull << (SLOT_SINCE_BITS + SERVICE_SLOT_SHIFT);

	for (uint64_t near = 0; near < 64; near++) {
		check_hold(near, 20000, 1);
		check_hold(12345678901 + near, 250 * 60 + near, 16);
		check_hold(wrap - 32 + near, 225000, 4);
		check_hold(5 * wrap - 100 + near, 1 + near, 1);
	}
	assert_int_equal(slot_ticks(16, 1), 1);
	assert_int_equal(slot_ticks(17, 1), 2);
	assert_int_equal(slot_ticks(SERVICE_IDLE_MAX_MS, SERVICE_HOLD_MAX), 28800000);
}

static void test_phases(void **state)
{
	uint64_t now = 1ull << 33;

	assert_int_equal(slot_phase(slot_pack(7, 0, 0), now, 100), SLOT_STABLE);
	assert_int_equal(slot_phase(slot_pack(7, 0, 0), 0, 0), SLOT_STABLE);
	assert_int_equal(slot_phase(0, now, 100), SLOT_STABLE);
	// Written as pins only: at any time.
	assert_int_equal(slot_phase(slot_pack(7, 7, slot_time(now)), now, 100), SLOT_PINS_ONLY);
	// The clock of another CPU is ahead.
	assert_int_equal(slot_phase(slot_pack(7, 6, slot_time(now) + 1), now, 100), SLOT_CHANGING);
	assert_int_equal(slot_phase(slot_pack(7, 6, slot_time(now) + 1), now, 0), SLOT_CHANGING);
	assert_int_equal(slot_phase(slot_pack(7, 6, 0), 0ull - 16, 100), SLOT_CHANGING);
	// Even after 17 years at 1000 Hz it does not look young.
	assert_int_equal(slot_phase(slot_pack(7, 6, slot_time(now)), now + (1ull << 39) - 16, 100),
			 SLOT_PINS_ONLY);
}

static void test_pin_ticks(void **state)
{
	static const struct {
		uint32_t hz, shift;
	} shifts[] = {{100, 7}, {250, 8}, {256, 8}, {300, 9}, {1000, 10}, {1024, 10}, {1, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(shifts); i++) {
		uint32_t shift = pin_shift(shifts[i].hz), hz = shifts[i].hz;
		uint64_t idle = (uint64_t)SERVICE_IDLE_MAX_MS / 1000 * hz;

		assert_int_equal(shift, shifts[i].shift);
		assert_true(1u << shift >= hz && 1u << shift < 2 * hz);
		// The longest life is far from the range of pin time.
		assert_true(pin_life(idle, shift) <= PIN_TIME / 8 * 5);
	}
	assert_int_equal(pin_ticks(256, 8), 1);
	assert_int_equal(pin_ticks(257, 8), 2);
	// A minute, or the idle of the service if that is less.
	assert_int_equal(pin_linger(900000, 1000, 10), pin_life(60000, 10));
	assert_int_equal(pin_linger(30000, 1000, 10), pin_life(30000, 10));
	assert_int_equal(pin_linger(0, 1000, 10), 0);
	assert_true(pin_worth(PIN_CLOSED) < pin_worth(PIN_HALF) &&
		    pin_worth(PIN_HALF) < pin_worth(PIN_FOUND) &&
		    pin_worth(PIN_FOUND) < pin_worth(PIN_TALKS));
}

// Live for longer than idle, by less than two ticks; from any start, across the wrap.
static void check_life(uint64_t start, uint64_t idle, uint32_t shift)
{
	uint32_t ticks = pin_ticks(idle, shift);
	uint64_t pin = pin_pack(1, 5, PIN_TALKS, pin_time(start, shift));

	uint64_t closed = pin_pack(1, 5, PIN_CLOSED, pin_time(start, shift));

	assert_true(pin_lives(pin, pin_time(start, shift), ticks, 0));
	assert_true(pin_lives(pin, pin_time(start + idle, shift), ticks, 0));
	assert_false(pin_lives(pin, pin_time(start + idle + (2ull << shift), shift), ticks, 0));
	assert_true(pin_lives(closed, pin_time(start + idle, shift), 0, ticks));
	assert_false(pin_lives(closed, pin_time(start + idle + (2ull << shift), shift), 0, ticks));
}

static void test_pin_life(void **state)
{
	uint64_t pin = pin_pack(1, 5, PIN_HALF, 10);

	for (uint64_t near = 0; near < 2000; near += 7) {
		check_life(near, 15000, 8);
		check_life((1ull << 26) - 1000 + near, 900000, 10);
		check_life((1ull << 24) - 300000 + near, 250ull * 28800, 8);
	}
	assert_int_equal(pin_age(pin, 10), 0);
	assert_int_equal(pin_age(pin, 9), 0); // another CPU was ahead
	assert_int_equal(pin_age(pin, (10u - SERVICE_PIN_AHEAD) & PIN_TIME), 0);
	assert_int_equal(pin_age(pin, (9u - SERVICE_PIN_AHEAD) & PIN_TIME),
			 PIN_TIME - SERVICE_PIN_AHEAD);
	assert_int_equal(pin_age(pin, 9 + (1 << 15)), (1 << 15) - 1);
	assert_false(pin_lives(0, 0, 100, 100));
	assert_false(pin_lives(pin_pack(1, BACKEND_NONE, PIN_TALKS, 10), 10, 100, 100));
}

// The time is written when the pin is an eighth of its life old. A flow that speaks again within
// its idle finds the pin, whenever it was written last, and one tick less of life would not do.
static void test_pin_freshness(void **state)
{
	for (uint32_t idle = 1; idle < 3000; idle++) {
		uint32_t life = pin_life(idle, 0), fresh = pin_fresh(life);
		uint32_t unwritten =
			fresh ? fresh - 1 : 0; // the greatest age that is left as it is

		assert_true(life - unwritten >= idle);
		assert_true(life - unwritten <= idle + 1);
		assert_int_equal(fresh, idle / 7);
	}
	assert_int_equal(pin_life(0, 0), 0);
	assert_int_equal(pin_life(900000, 10), 879 + 125);
	assert_int_equal(pin_fresh(pin_life(60000, 10)), 8);
}

// Slot and pin of a flow: the 32 bits of the pin tell the slot.
static void test_places(void **state)
{
	uint64_t s = 3;

	for (int i = 0; i < 10000; i++) {
		uint64_t hash = unit_random(&s);
		uint64_t pin = pin_pack(pin_flow_of(hash), 1, PIN_FOUND, 0);

		assert_int_equal(hash_scale(pin_flow(pin), 16381), slot_of(hash, 16381));
		assert_true(slot_of(hash, POLICY_RING_MIN) < POLICY_RING_MIN);
		assert_true(pin_bucket_of(hash, 131072) == hash >> 47);
		assert_true(pin_bucket_of(hash, 3) < 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slot_words),    cmocka_unit_test(test_pin_words),
		cmocka_unit_test(test_hold),          cmocka_unit_test(test_phases),
		cmocka_unit_test(test_pin_ticks),     cmocka_unit_test(test_pin_life),
		cmocka_unit_test(test_pin_freshness), cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
