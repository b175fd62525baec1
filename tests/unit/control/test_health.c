// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/health.c: states, times and the guard, by a clock that the tests set.
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
	(void)state;
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

// Each row: checks until the backend fails, with the last of them, by `fall` of `of`.
static void test_fall_of(void **state)
{
	(void)state;
	static const struct {
		uint32_t fall, of;
		const char *results;
	} rows[] = {
		{1, 1, "+-"},
		{1, 10, "+++-"},
		{2, 3, "-++-++-+-"},
		{3, 10, "-+-+-"},
		{3, 10, "-++++-+++-"},   // the first is the tenth of them
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

// It returns after `rise` checks whatever failed before, but these failures still count for the next one.
static void test_failures_before_the_return_count(void **state)
{
	(void)state;
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

// Up 0.7 s and down 0.7 s, checked every 500 ms: never three failures in a row.
static void test_a_flapping_backend_fails(void **state)
{
	(void)state;
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
	(void)state;
	struct health h = {0};

	assert_int_equal(health_due(&h, &rules, T0), 0);
	feed(&h, "---", T0);
	assert_int_equal(health_due(&h, &rules, T0), T0 + 30000);
	assert_false(health_tick(&h, &rules, T0 + 29999));
	assert_int_equal(health_counts_as(&h), BACKEND_FAILING);
	assert_true(health_tick(&h, &rules, T0 + 30000));
	assert_int_equal(health_counts_as(&h), BACKEND_DOWN);
	assert_int_equal(h.failed_ms, T0); // it failed then
	assert_false(health_tick(&h, &rules, T0 + 99999));
	assert_int_equal(health_due(&h, &rules, T0 + 99999), 0);
	assert_true(feed(&h, "++", T0 + 100000)); // from down too
	assert_int_equal(h.state, BACKEND_UP);
}

static void test_ramp(void **state)
{
	(void)state;
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
	(void)state;
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
	assert_true(health_link(&h, &unchecked, false, T0 + 6)); // nothing else can tell
	assert_int_equal(h.state, BACKEND_UP);
}

// The last of `fall` checks ends in time, however the backend dies.
static void test_pause(void **state)
{
	(void)state;
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

struct world {
	struct health health[8];
	struct health_share shares[8];
	size_t n;
};

static void add(struct world *w, uint32_t weight, uint64_t failed_ms)
{
	struct health *h = &w->health[w->n];

	*h = (struct health){.state = failed_ms ? BACKEND_DOWN : BACKEND_UP,
			     .failed_ms = failed_ms};
	w->shares[w->n] = (struct health_share){.health = h, .weight = weight};
	w->n++;
}

static void test_guard(void **state)
{
	(void)state;
	struct world w = {0};

	add(&w, 1, 0);
	add(&w, 1, 30);
	add(&w, 1, 10);
	add(&w, 1, 20);
	assert_int_equal(health_guard(w.shares, w.n, 2500), 0);
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	assert_true(w.health[1].kept); // failed last
	assert_int_equal(health_counts_as(&w.health[1]), BACKEND_UP);
	assert_int_equal(health_guard(w.shares, w.n, 5001), 2);
	assert_true(w.health[1].kept && w.health[3].kept && !w.health[2].kept);
	assert_int_equal(health_guard(w.shares, w.n, 10000), 3);
	assert_int_equal(health_guard(w.shares, w.n, 0), 0);
	assert_false(w.health[1].kept);
	w.health[2].state = BACKEND_UP; // one more recovers: none needs to be kept
	assert_int_equal(health_guard(w.shares, w.n, 5000), 0);
}

static void test_guard_counts_weight(void **state)
{
	(void)state;
	struct world w = {0};

	add(&w, 10, 0);
	add(&w, 1, 10);
	add(&w, 1, 20);
	assert_int_equal(health_guard(w.shares, w.n, 5000), 0);
	w.shares[0].exempt = true; // drained by command: half of the other two stays
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	assert_true(w.health[2].kept);
	w.shares[2].weight = 0; // gets no flows anyway
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	assert_true(w.health[1].kept && !w.health[2].kept);
	w.shares[1].exempt = true;
	assert_int_equal(health_guard(w.shares, w.n, 5000), 0);
}

// A backup has no slots while another backend is up: its weight replaces none that fails.
static void test_guard_beside_an_idle_backup(void **state)
{
	(void)state;
	struct world w = {0};

	add(&w, 1, 0);
	add(&w, 9, 20);
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	add(&w, 9, 0);
	w.shares[2].backup = true;
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	assert_true(w.health[1].kept);
	w.health[2].state = BACKEND_DOWN; // the backup is never kept
	w.health[2].failed_ms = 30;
	assert_int_equal(health_guard(w.shares, w.n, 10000), 1);
	assert_true(w.health[1].kept && !w.health[2].kept);
}

// Without another that is up backups take over, whatever they weigh.
static void test_guard_where_backups_take_over(void **state)
{
	(void)state;
	struct world w = {0};

	add(&w, 9, 10);
	add(&w, 9, 20);
	add(&w, 1, 0);
	w.shares[2].backup = true;
	assert_int_equal(health_guard(w.shares, w.n, 5000), 0);
	add(&w, 9, 0);
	w.shares[3].exempt = true; // drained by command: it gets no slots either
	assert_int_equal(health_guard(w.shares, w.n, 5000), 0);
	w.shares[3].exempt = false;
	w.shares[3].weight = 0; // nor without weight
	assert_int_equal(health_guard(w.shares, w.n, 5000), 0);
	w.shares[2].weight = 0; // now no backup can take over
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	w.shares[2].weight = 1;
	w.shares[2].exempt = true;
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	w.shares[2].exempt = false;
	w.health[2].state = BACKEND_FAILING;
	assert_int_equal(health_guard(w.shares, w.n, 5000), 1);
	assert_true(w.health[1].kept && !w.health[2].kept);
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
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_guard_counts_weight),
		cmocka_unit_test(test_guard_beside_an_idle_backup),
		cmocka_unit_test(test_guard_where_backups_take_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
