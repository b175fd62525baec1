// SPDX-License-Identifier: GPL-2.0-only
// Whether goals are reached: bounds in terms of other programs and rows of the same run.
#pragma once

#include "tests/bench/report.h"

// The results of the run so far.
struct measured {
	struct entry *entries;
	size_t n;
};

void measured_add(struct measured *m, const char *row, const struct result *result);
void measured_free(struct measured *m);

enum reach {
	REACH_YES,
	REACH_MINIMA,  // not in the medians
	REACH_MEDIANS, // not in the minima
	REACH_NO,
	REACH_UNKNOWN, // what the bound names was not measured
};

struct judged {
	enum reach reach;
	struct figures ratio; // to the sum of the named rows; without names, the nanoseconds
};

// How a row that is already added keeps its bound.
struct judged judge(const struct measured *m, const struct row_goal *goal, const struct bound *b);
// The first program of the same row that a bound names; NULL: none.
const char *goal_peer(const struct measured *m, const struct row_goal *goal);
// "<= 1.3 (pins-read + balance-ipip-stable)", "<= 150 ms", ">= 0.95 floor-filter"; the caller frees
// it.
char *bound_text(const struct row_goal *goal, const struct bound *b);
