// SPDX-License-Identifier: GPL-2.0-only
// Rates and times in the units of the datapath: jiffies, and jiffies << RATE_SHIFT.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/policy.h"
#include "ctl/policy/resolved.h"

// Bits of the largest frame that a rate may have to charge: BIG TCP's largest (GSO_MAX_SIZE), and
// some room.
#define RATE_FRAME_BITS (524288ull * 8)
// Bytes of a full frame on an Ethernet of 1500 bytes.
#define RATE_USUAL_FRAME 1514
// A theoretical arrival time stays below 2^63; jiffies64 << RATE_SHIFT of ten years is below 2^59.
#define RATE_TOLERANCE_MAX (1ull << 62)

// cost_mult, cost_shift and tolerance of a limit. -ERANGE when the burst is more than the clock can
// hold; then *ret_max is the largest one.
int rate_compile(const struct resolved_limit *limit, uint32_t hz, struct policy_rule *ret,
		 uint64_t *ret_max);

// Bytes of the largest frame that can conform to a limit in bits, RATE_FRAME_BITS / 8 at most.
uint64_t rate_largest_frame(const struct policy_rule *rule);

// Lines of buckets for a table of `max` addresses: a power of two.
uint32_t rate_lines(uint32_t max);

uint64_t rate_ticks(uint64_t ms, uint32_t hz); // rounded up
// Jiffies between two of `count` records a period, at least 1.
uint32_t rate_interval(uint64_t count, uint32_t period_ms, uint32_t hz);
