// SPDX-License-Identifier: GPL-2.0-only
// The best N of many: items are offered one after another, and no more than N are kept (a bounded
// heap).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"

#define BEST_ALL SIZE_MAX

struct best_item {
	uint64_t rank; // smaller is better
	size_t at;     // the caller's number; smaller is better if ranks are equal
};

struct best {
	size_t max; // how many are kept; BEST_ALL: all, which is a sort
	VEC(struct best_item) kept;
};

void best_offer(struct best *b, uint64_t rank, size_t at);
// Sorts what was kept, the best first; after that nothing is offered.
void best_sort(struct best *b);
void best_free(struct best *b);
