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
#include "tests/bench/report.h"

#define MOST 1000000

// Cuts the first word off, which may be empty.
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t\n"), *end = word + strcspn(word, " \t\n");

	*line = end + (*end != '\0');
	*end = '\0';
	return word;
}

static void read_line(const char *path, unsigned number, char *line, struct report *ret)
{
	struct budget budget = {0};
	char *row, *most, *goal;

	line[strcspn(line, "#")] = '\0';
	row = next_word(&line);
	most = next_word(&line);
	goal = next_word(&line);
	if (!*row)
		return;
	if (num_parse_u64(most, strlen(most), 1, MOST, &budget.most) ||
	    (*goal && num_parse_u64(goal, strlen(goal), 1, MOST, &budget.goal)) ||
	    *next_word(&line))
		bench_fail(EINVAL, "%s:%u: expected a row, its budget and perhaps its goal", path,
			   number);
	budget.row = mem_strdup(row);
	ret->budgets = mem_realloc(ret->budgets, ret->n_budgets + 1, sizeof(*ret->budgets));
	ret->budgets[ret->n_budgets++] = budget;
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

static void print_number(int width, uint64_t n)
{
	if (n)
		printf(" %*llu", width, (unsigned long long)n);
	else
		printf(" %*s", width, "-");
}

static const char *reached(const struct count *c, const struct budget *budget)
{
	if (!budget || !budget->goal)
		return "";
	return c->median <= budget->goal ? "reached" : "missed";
}

static void print(const char *id, const struct count *c, const struct budget *budget,
		  const struct helper *helpers, size_t n_helpers)
{
	printf("%-38s", id);
	print_number(6, c->median);
	print_number(6, c->least);
	print_number(6, c->most);
	print_number(6, budget ? budget->most : 0);
	print_number(5, budget ? budget->goal : 0);
	printf(" %-7s %5llu %5llu ", reached(c, budget), (unsigned long long)c->lines,
	       (unsigned long long)c->large);
	for (size_t i = 0; i < n_helpers; i++)
		printf(" %s %zu", helpers[i].name, helpers[i].calls);
	putchar('\n');
}

void counts_show(const struct report *r, const char *id, const struct count *c,
		 const struct helper *helpers, size_t n_helpers)
{
	if (r->verbose)
		print(id, c, NULL, helpers, n_helpers);
}

void counts_add(struct report *r, const char *row, const struct count *c,
		const struct helper *helpers, size_t n_helpers)
{
	struct budget *budget = find(r, row);

	if (budget)
		budget->used = true;
	if (r->verbose && !(r->passed + r->failed))
		printf("%-38s %6s %6s %6s %6s %5s %7s %5s %5s  %s\n", "ROW", "MEDIAN", "LEAST",
		       "MOST", "BUDGET", "GOAL", "", "LINES", "LARGE", "CALLS");
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

void report_failure(struct report *r, const char *id, const char *why)
{
	counts_fail(r, id, why);
}

int counts_end(struct report *r, bool all_rows)
{
	for (size_t i = 0; all_rows && i < r->n_budgets; i++)
		if (!r->budgets[i].used)
			counts_fail(r, r->budgets[i].row, "there is a budget, but no such row");
	printf("%zu passed, %zu failed\n", r->passed, r->failed);
	return r->failed || !r->passed;
}
