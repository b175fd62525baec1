// SPDX-License-Identifier: GPL-2.0-only
// Budgets of executed instructions, and what the rows took.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/executed/machine.h"

// Counts of the packets of a row: the budget limits the median.
struct count {
	uint64_t least, median, most;
	uint64_t lines, large; // median: cache lines of maps; of maps above 1 MB
};

struct budget {
	char *row;
	uint64_t most, goal; // goal 0: none
	bool used;
};

// Also the `report` of the bench, whose rows end here.
struct report {
	struct budget *budgets;
	size_t n_budgets;
	bool verbose;
	size_t passed, failed;
};

// Lines "ROW BUDGET [GOAL]", "#" begins a comment. Ends the program on failure.
void counts_read(const char *path, struct report *ret);
void counts_free(struct report *r);
// A row is within its budget, or is not, or could not be counted.
void counts_add(struct report *r, const char *row, const struct count *c,
		const struct helper *helpers, size_t n_helpers);
void counts_fail(struct report *r, const char *row, const char *why);
// A program beside a row. It has no budget.
void counts_show(const struct report *r, const char *id, const struct count *c,
		 const struct helper *helpers, size_t n_helpers);
// Budgets without a row fail. Prints the sum. Returns the exit status.
int counts_end(struct report *r, bool all_rows);
