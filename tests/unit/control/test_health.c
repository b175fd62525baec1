// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/health.c: states and times, by a clock that the tests set.
#include "ctl/control/health.h"

#include "ctl/table/lb_state.h"
#include "tests/unit/base/unit.h"

#define T0 1000000ull

static const struct health_rules rules = {
	.rise = 2, .fall = 3, .of = 3, .every_ms = 2000, .timeout_ms = 1000, .lost_ms = 30000};

static bool feed(struct health *h, const char *results, uint64_t now)
{
	bool changed = false;

	for (; *results; results++)
		changed = health_result(h, &rules, *results == '+', now);
	return changed;
}

static void test_rise_and_fall(void **state)
{
	struct health h = {0};

	assert_false(h.known);
	assert_false(feed(&h, "+--", T0));
	assert_int_equal(h.state, BACKEND_UP);
	assert_false(feed(&h, "+--", T0)); // 3 of 3: only failures in a row count
	assert_true(feed(&h, "-", T0 + 5));
	assert_int_equal(h.state, BACKEND_FAILING);
	assert_int_equal(h.since_ms, T0 + 5);
	assert_int_equal(h.failed_ms, T0 + 5);
	assert_false(feed(&h, "-+-+", T0 + 6));
	assert_int_equal(h.state, BACKEND_FAILING);
	assert_true(feed(&h, "+", T0 + 7));
	assert_int_equal(h.state, BACKEND_UP);
	assert_true(h.known);
}

// Each row: checks until the backend fails at the last one, by `fall` of `of`.
static void test_fall_of(void **state)
{
	static const struct {
		uint32_t fall, of;
		const char *results;
	} rows[] = {
		{1, 1, "+-"},
		{1, 10, "+++-"},
		{2, 3, "-++-++-+-"},
		{3, 10, "-+-+-"},
		{3, 10, "-++++-+++-"},   // the first is the tenth
		{3, 10, "-++++-++++--"}, // it is the eleventh: no longer counted
		{2, 64, "-++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++-"},
		{2, 64, "-+++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++--"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct health_rules r = rules;
		struct health h = {0};

		r.fall = rows[i].fall;
		r.of = rows[i].of;
		for (const char *c = rows[i].results; *c; c++)
			assert_int_equal(health_result(&h, &r, *c == '+', T0), !c[1]);
		assert_int_equal(h.state, BACKEND_FAILING);
	}
}

// A backend returns after `rise` good checks, whatever failed before, but the earlier failures
// still count for the next one.
static void test_failures_before_the_return_count(void **state)
{
	struct health_rules r = rules;
	struct health h = {0};

	r.of = 10;
	for (int i = 0; i < 3; i++)
		health_result(&h, &r, false, T0);
	assert_false(health_result(&h, &r, true, T0));
	assert_true(health_result(&h, &r, true, T0));
	assert_int_equal(h.state, BACKEND_UP);
	for (int i = 0; i < 5; i++)
		assert_false(health_result(&h, &r, true,
					   T0)); // 3 of the last 10 failed, but none of these
	assert_true(health_result(&h, &r, false, T0));
	for (int i = 0; i < 10; i++)
		health_result(&h, &r, true, T0);
	assert_false(health_result(&h, &r, false, T0));
}

// The backend is up 0.7 s and down 0.7 s, checked every 500 ms, so three checks in a row never
// fail.
static void test_a_flapping_backend_fails(void **state)
{
	static const struct {
		uint32_t of, checks; // until it fails; 0: never
	} rows[] = {{10, 8}, {3, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct health_rules r = rules;
		struct health h = {0};
		uint32_t failed_after = 0;

		r.of = rows[i].of;
		for (uint32_t n = 0; n < 100 && !failed_after; n++)
			if (health_result(&h, &r, n * 500 % 1400 < 700, T0 + n * 500))
				failed_after = n + 1;
		assert_int_equal(failed_after, rows[i].checks);
	}
}

static void test_lost(void **state)
{
	struct health h = {0};

	assert_int_equal(health_due(&h, &rules, T0), 0);
	feed(&h, "---", T0);
	assert_int_equal(health_due(&h, &rules, T0), T0 + 30000);
	assert_false(health_tick(&h, &rules, T0 + 29999));
	assert_int_equal(h.state, BACKEND_FAILING);
	assert_true(health_tick(&h, &rules, T0 + 30000));
	assert_int_equal(h.state, BACKEND_DOWN);
	assert_int_equal(h.failed_ms, T0); // it failed then
	assert_false(health_tick(&h, &rules, T0 + 99999));
	assert_int_equal(health_due(&h, &rules, T0 + 99999), 0);
	assert_true(feed(&h, "++", T0 + 100000)); // from down too
	assert_int_equal(h.state, BACKEND_UP);
}

static void test_ramp(void **state)
{
	struct health_rules r = rules;
	struct health h = {0};
	uint64_t now = T0;
	unsigned steps = 0;

	r.ramp_ms = 16000;
	assert_int_equal(health_missing(&h, &r, T0), 0); // the first state is no recovery
	for (int i = 0; i < 3; i++)
		health_result(&h, &r, false, T0);
	health_result(&h, &r, true, T0);
	health_result(&h, &r, true, T0);
	assert_int_equal(health_missing(&h, &r, T0), LB_RAMP - 1);
	while ((now = health_due(&h, &r, now)) && steps < 99) {
		assert_true(health_tick(&h, &r, now));
		steps++;
		assert_int_equal(health_missing(&h, &r, now), LB_RAMP - 1 - steps);
	}
	assert_int_equal(steps, LB_RAMP - 1);
	for (int i = 0; i < 3; i++)
		health_result(&h, &r, false, T0 + 99999);
	assert_int_equal(health_missing(&h, &r, T0 + 99999), 0);
}

static void test_link(void **state)
{
	const struct health_rules unchecked = {0};
	struct health h = {0};

	assert_false(health_link(&h, &rules, false, T0));
	assert_true(health_link(&h, &rules, true, T0));
	assert_int_equal(h.state, BACKEND_DOWN);
	assert_false(health_link(&h, &rules, true, T0 + 1));
	assert_false(feed(&h, "++++", T0 + 2)); // not while it is cut
	assert_int_equal(h.state, BACKEND_DOWN);
	assert_false(health_link(&h, &rules, false, T0 + 3));
	assert_int_equal(h.state, BACKEND_DOWN);
	assert_true(feed(&h, "+", T0 + 4));
	assert_int_equal(h.state, BACKEND_UP);
	assert_true(health_link(&h, &unchecked, true, T0 + 5));
	assert_true(health_link(&h, &unchecked, false, T0 + 6)); // no other check can report it
	assert_int_equal(h.state, BACKEND_UP);
}

// The last of `fall` checks ends in time, however the backend dies.
static void test_pause(void **state)
{
	static const struct health_rules many[] = {
		{2, 3, 3, 2000, 1000, 0, 0}, {2, 2, 2, 2000, 1000, 0, 0},
		{2, 2, 2, 2000, 500, 0, 0},  {2, 5, 5, 1000, 800, 0, 0},
		{1, 3, 3, 100, 66, 0, 0},    {2, 3, 10, 2000, 1000, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		const struct health_rules *r = &many[i];
		uint64_t began = r->every_ms, ended = 0; // it died right after a check had begun
		struct health h = {0};

		assert_int_equal(health_pause(&h, r), r->every_ms);
		for (;;) {
			ended = began + r->timeout_ms; // it is silent
			if (health_result(&h, r, false, ended))
				break;
			began += health_pause(&h, r);
			began = began < ended ? ended : began;
		}
		assert_in_range(ended, 1, r->fall * r->every_ms);
		assert_int_equal(health_pause(&h, r), r->every_ms);
	}
}

// A new backend needs one good check, however many have failed before; its first failure is enough
// as well.
static void test_fresh(void **state)
{
	struct health_rules r = rules;
	struct health h = {.fresh = true};

	r.ramp_ms = 16000;
	assert_true(health_result(&h, &r, true, T0));
	assert_true(h.state == BACKEND_UP && h.known && !h.fresh && !h.failed_ms && !h.ramp_ms);
	assert_false(health_result(&h, &r, false, T0)); // from now on as all others
	h = (struct health){.fresh = true};
	assert_true(health_result(&h, &r, false, T0));
	assert_true(h.state == BACKEND_FAILING && h.fresh && !h.failed_ms);
	assert_false(health_result(&h, &r, false, T0));
	assert_true(health_tick(&h, &r, T0 + r.lost_ms));
	assert_true(health_result(&h, &r, true, T0 + r.lost_ms));
	assert_true(h.state == BACKEND_UP && !h.fresh && !h.failed_ms && !h.ramp_ms);
	h = (struct health){.fresh = true};
	assert_true(health_link(&h, &r, true, T0));
	assert_false(health_result(&h, &r, true, T0)); // its link is dead
	assert_true(h.state == BACKEND_DOWN && h.fresh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rise_and_fall),
		cmocka_unit_test(test_fall_of),
		cmocka_unit_test(test_failures_before_the_return_count),
		cmocka_unit_test(test_a_flapping_backend_fails),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_ramp),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
