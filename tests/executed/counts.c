// SPDX-License-Identifier: GPL-2.0-only
// Compares what the rows took with their budgets.
#include "tests/executed/counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "tests/bench/bench.h"

static void read_line(const char *path, unsigned number, char *line, struct report *ret)
{
	char *row = line + strspn(line, " \t"), *end, *budget;
	uint64_t most;

	row[strcspn(row, "#\n")] = '\0';
	if (!*row)
		return;
	end = row + strcspn(row, " \t");
	budget = end + strspn(end, " \t");
	budget[strcspn(budget, " \t")] = '\0';
	if (num_parse_u64(budget, strlen(budget), 1, 1000000, &most))
		bench_fail(EINVAL, "%s:%u: expected a row and its budget", path, number);
	*end = '\0';
	ret->budgets = mem_realloc(ret->budgets, ret->n_budgets + 1, sizeof(*ret->budgets));
	ret->budgets[ret->n_budgets++] = (struct budget){.row = mem_strdup(row), .most = most};
}

void counts_read(const char *path, struct report *ret)
{
	CLEANUP_FILE FILE *f = fopen(path, "re");
	unsigned number = 0;
	char line[256];

	if (!f)
		bench_fail(errno, "cannot read '%s'", path);
	while (fgets(line, sizeof(line), f))
		read_line(path, ++number, line, ret);
}

void counts_free(struct report *r)
{
	for (size_t i = 0; i < r->n_budgets; i++)
		free(r->budgets[i].row);
	free(r->budgets);
}

static struct budget *find(const struct report *r, const char *row)
{
	for (size_t i = 0; i < r->n_budgets; i++)
		if (!strcmp(r->budgets[i].row, row))
			return &r->budgets[i];
	return NULL;
}

static void print(const char *row, const struct count *c, const struct budget *budget,
		  const struct helper *helpers, size_t n_helpers)
{
	printf("%-30s %6llu %6llu %6llu %6llu %5llu %5llu ", row, (unsigned long long)c->median,
	       (unsigned long long)c->least, (unsigned long long)c->most,
	       (unsigned long long)(budget ? budget->most : 0), (unsigned long long)c->lines,
	       (unsigned long long)c->large);
	for (size_t i = 0; i < n_helpers; i++)
		printf(" %s %zu", helpers[i].name, helpers[i].calls);
	putchar('\n');
}

void counts_add(struct report *r, const char *row, const struct count *c,
		const struct helper *helpers, size_t n_helpers)
{
	struct budget *budget = find(r, row);

	if (budget)
		budget->used = true;
	if (r->verbose && !(r->passed + r->failed))
		printf("%-30s %6s %6s %6s %6s %5s %5s  %s\n", "ROW", "MEDIAN", "LEAST", "MOST",
		       "BUDGET", "LINES", "LARGE", "CALLS");
	if (r->verbose)
		print(row, c, budget, helpers, n_helpers);
	if (budget && c->median <= budget->most) {
		r->passed++;
		return;
	}
	r->failed++;
	if (budget)
		printf("FAILED: %s: %llu instructions executed, the budget is %llu\n", row,
		       (unsigned long long)c->median, (unsigned long long)budget->most);
	else
		printf("FAILED: %s: no budget; %llu instructions executed\n", row,
		       (unsigned long long)c->median);
}

void counts_fail(struct report *r, const char *row, const char *why)
{
	struct budget *budget = find(r, row);

	if (budget)
		budget->used = true;
	r->failed++;
	printf("FAILED: %s: %s\n", row, why);
}

int counts_end(struct report *r, bool all_rows)
{
	for (size_t i = 0; all_rows && i < r->n_budgets; i++)
		if (!r->budgets[i].used)
			counts_fail(r, r->budgets[i].row, "there is a budget, but no such row");
	printf("%zu passed, %zu failed\n", r->passed, r->failed);
	return r->failed || !r->passed;
}
