// SPDX-License-Identifier: GPL-2.0-only
// The parameters of GCRA, the generic cell rate algorithm, as virtual scheduling.
//
// ATM Forum TM 4.1, section 4.4.2; ITU-T I.371, annex A.
#include "ctl/table/rates.h"

#include <errno.h>

typedef unsigned __int128 wide;

#define RATE_JIFFY    (1ull << RATE_SHIFT)
#define RATE_MULT_MAX (1ull << 41) // times RATE_FRAME_BITS: below 2^64

// A packet costs a whole number of rate time in the datapath, so the nearest one is taken here; 0
// for rates above 2^21 packets a jiffy, which no packet exceeds.
static void cost_of_packet(wide time, wide units, struct policy_rule *ret)
{
	ret->cost_mult = (uint64_t)((time + units / 2) / units);
	ret->cost_shift = 0;
}

// A bit costs less than 1 from 2^20 bits a jiffy on: as many binary places as a frame leaves room
// for, at least 40 bits in all.
static void cost_of_bit(wide time, wide units, struct policy_rule *ret)
{
	uint32_t shift = 63;

	while (shift && (time << shift) / units >= RATE_MULT_MAX)
		shift--;
	ret->cost_mult = (uint64_t)((time << shift) / units);
	ret->cost_shift = shift;
}

static wide cost_of(const struct policy_rule *rule, uint64_t units)
{
	return (wide)units * rule->cost_mult >> rule->cost_shift;
}

// The least burst. The clock only moves once a jiffy, and a jiffy's packets may arrive at once: a
// burst below rate / HZ + 1 would cut the rate itself. rate / HZ units cost one jiffy exactly.
static wide tolerance_of(const struct policy_rule *rule, uint64_t burst)
{
	wide asked = cost_of(rule, burst), least = RATE_JIFFY + cost_of(rule, 1);

	return asked > least ? asked : least;
}

static uint64_t largest_burst(const struct policy_rule *rule)
{
	uint64_t low = 0, high = UINT64_MAX / 2;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (tolerance_of(rule, middle) < RATE_TOLERANCE_MAX)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int rate_compile(const struct resolved_limit *limit, uint32_t hz, struct policy_rule *ret,
		 uint64_t *ret_max)
{
	// `units` arrive in `time`.
	wide time = ((wide)limit->period_ms * hz) << RATE_SHIFT, units = (wide)limit->count * 1000;
	struct policy_rule rule = {0};
	wide tolerance;

	if (limit->bits)
		cost_of_bit(time, units, &rule);
	else
		cost_of_packet(time, units, &rule);
	tolerance = tolerance_of(&rule, limit->burst);
	if (tolerance >= RATE_TOLERANCE_MAX) {
		*ret_max = largest_burst(&rule);
		return -ERANGE;
	}
	ret->cost_mult = rule.cost_mult;
	ret->cost_shift = rule.cost_shift;
	ret->tolerance = (uint64_t)tolerance;
	return 0;
}

uint64_t rate_largest_frame(const struct policy_rule *rule)
{
	uint64_t low = 0, high = RATE_FRAME_BITS / 8 + 1;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (cost_of(rule, middle * 8) <= rule->tolerance)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t rate_lines(uint32_t max)
{
	uint32_t lines = 1, need = max / POLICY_BUCKETS + !!(max % POLICY_BUCKETS);

	while (lines < need)
		lines *= 2;
	return lines;
}

uint64_t rate_ticks(uint64_t ms, uint32_t hz)
{
	return (uint64_t)(((wide)ms * hz + 999) / 1000);
}

uint32_t rate_interval(uint64_t count, uint32_t period_ms, uint32_t hz)
{
	wide units = (wide)count * 1000, ticks = ((wide)period_ms * hz + units - 1) / units;

	return ticks < 1 ? 1 : ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}
