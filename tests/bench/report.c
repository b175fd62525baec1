// SPDX-License-Identifier: GPL-2.0-only
// Prints rows and collects them for the JSON document.
#include "tests/bench/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "tests/bench/bench.h"
#include "tests/bench/machine.h"

struct report {
	struct json *machine, *rows;
	size_t promised, reached, skipped;
};

struct report *report_new(int cpu, size_t rounds)
{
	struct report *r = mem_new(struct report);

	r->machine = machine_describe(cpu, rounds);
	r->rows = json_array();
	printf("%s, %zu rounds on CPU %d, load %s; net ns per packet\n\n",
	       json_get_string(r->machine, "cpu"), rounds, cpu,
	       json_get_string(r->machine, "load_before"));
	printf("%-30s %-14s %10s %10s %8s  %s\n", "ID", "PROGRAM", "MIN", "MEDIAN", "RATIO",
	       "GOAL");
	return r;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	json_free(r->machine);
	json_free(r->rows);
	free(r);
}

// Times of commands are printed in milliseconds.
static void print_ns(double ns)
{
	if (ns >= 1e6)
		printf(" %7.0f ms", ns / 1e6);
	else
		printf(" %10.1f", ns);
}

static bool holds(const struct row *row)
{
	const struct row_goal *g = row->goal;

	if (g->reach_ns > 0 && row->net_min > g->reach_ns)
		return false;
	if (g->reach_kb && row->peak_kb > g->reach_kb)
		return false;
	if (g->reach_ratio <= 0 || row->ratio <= 0)
		return true;
	return row->share ? row->ratio >= g->reach_ratio : row->ratio <= g->reach_ratio;
}

static bool promises(const struct row_goal *g)
{
	return g->reach_ns > 0 || g->reach_ratio > 0 || g->reach_kb;
}

// "<= 20, <= 0.25 of xdp-filter: reached"
static void print_reach(const struct row *row)
{
	const struct row_goal *g = row->goal;
	const char *comma = "";

	if (g->reach_ns >= 1e6)
		printf("<= %.0f ms", g->reach_ns / 1e6);
	else if (g->reach_ns > 0)
		printf("<= %.0f", g->reach_ns);
	comma = g->reach_ns > 0 ? ", " : "";
	if (g->reach_ratio > 0)
		printf("%s%s %.3g of %s", comma, row->share ? ">=" : "<=", g->reach_ratio, g->peer);
	if (g->reach_kb)
		printf(", <= %.0f MB", (double)g->reach_kb * 1024 / 1e6);
	printf(": %s", holds(row) ? "reached" : "NOT REACHED");
}

static void print_row(const struct row *row)
{
	printf("%-30s %-14s", row->is_peer ? "" : row->goal->id, row->subject);
	print_ns(row->net_min);
	print_ns(row->net_median);
	if (row->ratio > 0)
		printf(" %8.3f  ", row->ratio);
	else
		printf(" %8s  ", "");
	if (row->pps > 0)
		printf("%.2f Mpps ", row->pps / 1e6);
	if (row->peak_kb)
		printf("peak %.0f MB ", (double)row->peak_kb * 1024 / 1e6);
	if (!row->is_peer && promises(row->goal))
		print_reach(row);
	putchar('\n');
	fflush(stdout);
}

static char *id_of(const struct row_goal *goal, const char *subject, bool is_peer)
{
	return is_peer ? mem_printf("%s/%s", goal->id, subject) : mem_strdup(goal->id);
}

static struct json *number_or_nothing(double n)
{
	return n > 0 ? json_real(n) : json_nothing();
}

static void set_goal(struct json *j, const struct row *row)
{
	const struct row_goal *g = row->goal;

	if (row->is_peer || !promises(g))
		return;
	if (g->reach_ns > 0)
		json_set(j, "reach_ns", json_real(g->reach_ns));
	if (g->reach_ratio > 0)
		json_set(j, "reach_ratio", json_real(g->reach_ratio));
	if (g->reach_kb)
		json_set(j, "reach_kb", json_u64(g->reach_kb));
	json_set(j, "reached", json_bool(holds(row)));
}

void report_row(struct report *r, const struct row *row)
{
	const char *peer = row->is_peer ? row->subject : row->goal->peer;
	CLEANUP_FREE char *id = id_of(row->goal, row->subject, row->is_peer);
	struct json *j = json_object();

	json_set(j, "id", json_string(id));
	json_set(j, "what", json_string(row->goal->what));
	json_set(j, "net_ns_min", json_real(row->net_min));
	json_set(j, "net_ns_median", json_real(row->net_median));
	json_set(j, "baseline", row->baseline ? json_string(row->baseline) : json_nothing());
	json_set(j, "peer", peer && row->ratio > 0 ? json_string(peer) : json_nothing());
	json_set(j, "ratio_to_peer", number_or_nothing(row->ratio));
	json_set(j, "program", json_string(row->subject));
	if (row->baseline)
		json_set(j, "baseline_ns", json_real(row->base_ns));
	if (row->pps > 0)
		json_set(j, "pps", json_real(row->pps));
	if (row->peak_kb)
		json_set(j, "peak_kb", json_u64(row->peak_kb));
	set_goal(j, row);
	json_append(r->rows, j);
	if (!row->is_peer && promises(row->goal)) {
		r->promised++;
		r->reached += holds(row);
	}
	print_row(row);
}

void report_skipped(struct report *r, const struct row_goal *goal, const char *subject,
		    const char *why)
{
	bool is_peer = strcmp(subject, "weir") != 0;
	CLEANUP_FREE char *id = id_of(goal, subject, is_peer);
	static const char *const numbers[] = {"net_ns_min", "net_ns_median", "baseline", "peer",
					      "ratio_to_peer"};
	struct json *j = json_object();

	json_set(j, "id", json_string(id));
	json_set(j, "what", json_string(goal->what));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		json_set(j, numbers[i], json_nothing());
	json_set(j, "program", json_string(subject));
	json_set(j, "skipped", json_string(why));
	json_append(r->rows, j);
	r->skipped++;
	printf("%-30s %-14s skipped: %s\n", is_peer ? "" : goal->id, subject, why);
}

void report_write(struct report *r, const char *path)
{
	CLEANUP_JSON struct json *document = json_object();
	CLEANUP_FILE FILE *f = fopen(path, "we");

	machine_finish(r->machine);
	json_set(document, "machine", TAKE_PTR(r->machine));
	json_set(document, "rows", TAKE_PTR(r->rows));
	if (!f || json_print(document, f, true) || fflush(f))
		bench_fail(errno, "cannot write '%s'", path);
	printf("\n%zu of %zu goals reached, %zu programs skipped, %s\n", r->reached, r->promised,
	       r->skipped, path);
}
