// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/rates.c: the numbers against exact arithmetic, and the datapath's GCRA
// run with them.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/rates.h"

typedef unsigned __int128 wide;

static const uint32_t hertz[] = {100, 250, 300, 1000};

static struct resolved_limit limit_of(uint64_t count, uint32_t period_ms, bool bits)
{
	return (struct resolved_limit){.given = true,
				       .bits = bits,
				       .count = count,
				       .period_ms = period_ms,
				       .burst = count,
				       .mask4 = 32,
				       .mask6 = 64,
				       .max = 65536};
}

static struct policy_rule compiled(const struct resolved_limit *limit, uint32_t hz)
{
	struct policy_rule rule;
	uint64_t max;

	memset(&rule, 0, sizeof(rule));
	assert_int_equal(rate_compile(limit, hz, &rule, &max), 0);
	return rule;
}

// As xdp/rate.bpf.h computes it, in 64 bits.
static uint64_t datapath_cost(const struct policy_rule *rule, uint64_t units)
{
	assert_true((wide)units * rule->cost_mult <= UINT64_MAX);
	assert_true(rule->cost_shift < 64);
	return units * rule->cost_mult >> rule->cost_shift;
}

// |cost - exact| where exact = units * period * hz << RATE_SHIFT / count, in 1/1024.
static void check_cost(const struct resolved_limit *limit, uint32_t hz, uint64_t units)
{
	struct policy_rule rule = compiled(limit, hz);
	wide exact = (((wide)units * limit->period_ms * hz) << (RATE_SHIFT + 10)) /
		     ((wide)limit->count * 1000);
	wide cost = (wide)datapath_cost(&rule, units) << 10;
	wide off = cost > exact ? cost - exact : exact - cost;

	assert_true(off <= 1024 + (exact >> 40));
}

static void test_costs(void **state)
{
	static const uint64_t packets[] = {1,        2,         3,      7,         10,
					   60,       999,       20000,  65537,     1000000,
					   33333333, 100000000, 250000, 1000000000};
	static const uint64_t bits[] = {1,          999,           8000,          64000,
					1000000,    123456789,     1000000000,    40000000000,
					7777777777, 1000000000000, 10000000000000};
	static const uint32_t period[] = {1000, 60000, 3600000};
	static const uint64_t frame[] = {60 * 8, 64 * 8, 1514 * 8, 9014 * 8, RATE_FRAME_BITS};

	for (size_t h = 0; h < ARRAY_SIZE(hertz); h++) {
		for (size_t p = 0; p < ARRAY_SIZE(packets) * 3; p++) {
			struct resolved_limit l = limit_of(packets[p / 3], period[p % 3], false);

			check_cost(&l, hertz[h], 1);
		}
		for (size_t b = 0; b < ARRAY_SIZE(bits) * ARRAY_SIZE(frame); b++) {
			struct resolved_limit l = limit_of(bits[b / 5], 1000, true);

			check_cost(&l, hertz[h], frame[b % 5]);
		}
	}
}

// One packet an hour; 10 Tbit/s; worked out on paper.
static void test_examples(void **state)
{
	struct resolved_limit l = limit_of(1, 3600000, false);
	struct policy_rule rule = compiled(&l, 1000);

	assert_int_equal(datapath_cost(&rule, 1), 3600000ull << 20);
	assert_int_equal(rule.tolerance, (3600000ull << 20) + (1 << 20));
	l = limit_of(10000000000000ull, 1000, true);
	rule = compiled(&l, 250); // 1500 bytes: 12000 / 1e13 s = 0.3 jiffies >> 20 …
	assert_int_equal(datapath_cost(&rule, 12000), 0);
	assert_int_equal(datapath_cost(&rule, 65536 * 8), 13);        // 13.74
	assert_int_equal(datapath_cost(&rule, RATE_FRAME_BITS), 109); // 109.95
	l = limit_of(1000, 1000, false);
	l.burst = 50;
	rule = compiled(&l, 1000);
	assert_int_equal(rule.cost_mult >> rule.cost_shift, 1 << 20);
	assert_int_equal(rule.tolerance, 50 << 20);
	l.burst = 1; // rate / HZ + 1
	rule = compiled(&l, 1000);
	assert_int_equal(rule.tolerance, 2 << 20);
}

// ---- the algorithm ------------------------------------------------------------------------------

struct meter {
	struct policy_rule rule;
	uint64_t tat;
};

// meter_exceeds of xdp/rate.bpf.h.
static bool accepts(struct meter *m, uint64_t jiffies, uint64_t units)
{
	uint64_t now = jiffies << RATE_SHIFT, cost = datapath_cost(&m->rule, units);
	uint64_t from = m->tat > now ? m->tat : now;

	if (from - now + cost > m->rule.tolerance)
		return false;
	m->tat = from + cost;
	return true;
}

// A flood: in each jiffy as many as the limit allows.
static uint64_t flood(const struct resolved_limit *limit, uint32_t hz, uint64_t jiffies,
		      uint64_t units)
{
	struct meter m = {.rule = compiled(limit, hz)};
	uint64_t start = 1ull << 32, accepted = 0;

	for (uint64_t j = 0; j < jiffies; j++)
		while (accepts(&m, start + j, units))
			accepted++;
	return accepted;
}

static void check_flood(uint64_t count, uint32_t period_ms, uint64_t burst, uint32_t hz,
			uint64_t seconds)
{
	struct resolved_limit l = limit_of(count, period_ms, false);
	uint64_t jiffies = seconds * hz, got, least, most;

	l.burst = burst;
	got = flood(&l, hz, jiffies, 1);
	// The rate in all jiffies but the first, and the burst, or the packets of a jiffy and one
	// more.
	least = (uint64_t)((wide)count * 1000 * (jiffies - 1) / ((wide)period_ms * hz));
	most = least + 2 +
	       (burst > count * 1000 / period_ms / hz + 1 ? burst
							  : count * 1000 / period_ms / hz + 1);
	assert_in_range(got * 1000, least * 999, most * 1001);
	assert_true(got >= burst);
}

static void test_floods(void **state)
{
	for (size_t h = 0; h < ARRAY_SIZE(hertz); h++) {
		check_flood(1, 1000, 1, hertz[h], 60);
		check_flood(10, 1000, 10, hertz[h], 60);
		check_flood(10, 1000, 1, hertz[h], 60);
		check_flood(1, 60000, 3, hertz[h], 600);
		check_flood(1, 3600000, 1, hertz[h], 7200);
		check_flood(999, 1000, 1, hertz[h], 20);
		check_flood(20000, 1000, 20000, hertz[h], 5);
		check_flood(100000, 1000, 1, hertz[h], 5); // the burst would cut the rate
	}
}

// The burst is exact: so many packets at once, and not one more.
static void test_burst_exact(void **state)
{
	for (uint64_t burst = 1; burst < 2000; burst = burst * 3 + 1) {
		struct resolved_limit l = limit_of(7, 1000, false);
		struct meter m;
		uint64_t n = 0;

		l.burst = burst;
		m = (struct meter){.rule = compiled(&l, 250)};
		while (accepts(&m, 1 << 20, 1))
			n++;
		assert_int_equal(n, burst);
	}
}

static void test_bits(void **state)
{
	struct resolved_limit l = limit_of(100000000, 1000, true); // 100 Mbit/s, a second's burst
	uint64_t got = flood(&l, 250, 250 * 10, 1500 * 8);

	assert_in_range(got, 11 * 8330, 11 * 8334);
}

// ---- bounds -------------------------------------------------------------------------------------

static void test_bounds(void **state)
{
	struct resolved_limit l = limit_of(1, 3600000, false);
	struct policy_rule rule;
	uint64_t max = 0;

	memset(&rule, 0, sizeof(rule));
	l.per = PER_SOURCE; // a clock per address reaches as far as one per rule
	l.burst = 1000000;
	assert_int_equal(rate_compile(&l, 1000, &rule, &max), 0);
	assert_int_equal(rule.tolerance, 1000000 * (3600000ull << 20));
	l.burst = 2000000;
	assert_int_equal(rate_compile(&l, 1000, &rule, &max), -ERANGE);
	assert_in_range(max, 1000000, 2000000);
	l.burst = max;
	assert_int_equal(rate_compile(&l, 1000, &rule, &max), 0);
	assert_true(rule.tolerance < RATE_TOLERANCE_MAX);
	l.burst = max + 1;
	assert_int_equal(rate_compile(&l, 1000, &rule, &max), -ERANGE);
	l = limit_of(1, 60000, false);
	l.per = PER_DESTINATION;
	l.burst = UINT64_MAX;
	assert_int_equal(rate_compile(&l, 250, &rule, &max), -ERANGE);
}

// The largest frame whose cost the tolerance covers, as the datapath compares them.
static void test_largest_frame(void **state)
{
	struct resolved_limit slow = limit_of(8000, 1000, true);
	struct resolved_limit fast = limit_of(80000000, 1000, true);
	struct policy_rule rule = compiled(&slow, 250);

	assert_int_equal(rate_largest_frame(&rule), 1000);
	fast.burst = 8; // a jiffy's bits come on top: 320,000
	rule = compiled(&fast, 250);
	assert_int_equal(rate_largest_frame(&rule), 40000);
	assert_true(datapath_cost(&rule, 40000 * 8) <= rule.tolerance);
	assert_true(datapath_cost(&rule, 40001 * 8) > rule.tolerance);
	fast.burst = 80000000;
	rule = compiled(&fast, 250);
	assert_int_equal(rate_largest_frame(&rule), RATE_FRAME_BITS / 8);
}

static void test_lines_and_ticks(void **state)
{
	assert_int_equal(rate_lines(1), 1);
	assert_int_equal(rate_lines(5), 1);
	assert_int_equal(rate_lines(6), 2);
	assert_int_equal(rate_lines(65536), 16384);
	assert_int_equal(rate_lines(81920), 16384);
	assert_int_equal(rate_lines(81921), 32768);
	assert_int_equal(rate_lines(16777216), 4194304);
	assert_int_equal(rate_ticks(0, 250), 0);
	assert_int_equal(rate_ticks(1, 250), 1);
	assert_int_equal(rate_ticks(600000, 250), 150000);
	assert_int_equal(rate_ticks(3660ull * 24 * 3600 * 1000, 1000), 316224000000ull);
	assert_int_equal(rate_interval(1, 1000, 250), 250);
	assert_int_equal(rate_interval(3, 1000, 250), 84);
	assert_int_equal(rate_interval(1000000, 1000, 250), 1);
	assert_int_equal(rate_interval(1, 3600000, 1000), 3600000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs),         cmocka_unit_test(test_examples),
		cmocka_unit_test(test_floods),        cmocka_unit_test(test_burst_exact),
		cmocka_unit_test(test_bits),          cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_largest_frame), cmocka_unit_test(test_lines_and_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
